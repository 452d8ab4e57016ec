package hardware

import (
	"encoding/pem"
	"net/url"
	"strings"
)

// PowerControl says how a machine is switched on and off.
type PowerControl struct {
	// Driver is manual (a person presses the button; the default) or webhook.
	Driver string `json:"driver"`
	// URL of the webhook driver: calls are POSTed there, see deploy/docs/power.md.
	URL string `json:"url,omitempty"`
	// Secret signs the webhook's calls (HMAC-SHA256).
	Secret string `json:"secret,omitempty" secret:"true"`
	// CA are PEM certificates to trust for https, besides the system's.
	CA string `json:"ca,omitempty"`
}

// The power drivers.
const (
	PowerManual  = "manual"
	PowerWebhook = "webhook"
)

// Limits on a PowerControl, in bytes.
const (
	MinPowerSecret = 16
	MaxPowerSecret = 1024
	MaxPowerURL    = 2048
	MaxPowerCA     = 64 << 10
)

func (p *PowerControl) check(c *Checker) {
	if p == nil {
		return
	}
	switch p.Driver {
	case PowerManual:
		if p.URL != "" || p.Secret != "" || p.CA != "" {
			c.Addf("spec.power", "has settings that the driver manual does not read (set driver: webhook, or leave them out)")
		}
	case PowerWebhook:
		p.checkWebhook(c)
	default:
		c.Addf("spec.power.driver", "%q is not known (manual or webhook)", p.Driver)
	}
}

func (p *PowerControl) checkWebhook(c *Checker) {
	u, err := url.Parse(p.URL)
	switch {
	case len(p.URL) > MaxPowerURL:
		c.Addf("spec.power.url", "has %d bytes, the limit is %d", len(p.URL), MaxPowerURL)
	case (err == nil && u.User != nil) || (err != nil && strings.Contains(p.URL, "@")):
		// The value is not shown: it has a password in it.
		c.Addf("spec.power.url", "has a user name in it (leave it out: calls are signed with spec.power.secret)")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		c.Addf("spec.power.url", "%.120q is not an http(s) URL (write it as https://power.example.org/rack1)", p.URL)
	}
	// What was shown may be sent back: Unredact puts the kept secret there.
	if (len(p.Secret) < MinPowerSecret || len(p.Secret) > MaxPowerSecret) && p.Secret != Redacted {
		c.Addf("spec.power.secret", "has %d bytes, wanted %d to %d (make one: openssl rand -hex 32)", len(p.Secret), MinPowerSecret, MaxPowerSecret)
	}
	switch {
	case p.CA == "":
	case len(p.CA) > MaxPowerCA:
		c.Addf("spec.power.ca", "has %d bytes, the limit is %d", len(p.CA), MaxPowerCA)
	case u != nil && u.Scheme == "http":
		c.Addf("spec.power.ca", "is not read for an http URL (write https in spec.power.url, or leave it out)")
	default:
		checkCertificates(c, "spec.power.ca", p.CA)
	}
}

// checkCertificates wants PEM blocks of certificates and nothing else: a private
// key would be shown to everybody who may read the record.
func checkCertificates(c *Checker, field, text string) {
	rest := []byte(text)
	for n := 0; ; n++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			if n == 0 || strings.TrimSpace(string(rest)) != "" {
				c.Addf(field, "is not a certificate in PEM (it begins with -----BEGIN CERTIFICATE-----)")
			}
			return
		}
		if b.Type != "CERTIFICATE" {
			c.Addf(field, "has a %.40s in it (give the certificate only)", PlainText(b.Type, 40))
			return
		}
	}
}
