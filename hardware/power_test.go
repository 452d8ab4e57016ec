package hardware

import (
	"encoding/pem"
	"errors"
	"strings"
	"testing"
)

// cert is PEM only; whether a certificate is in it shows when it is used.
var cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))

func TestPowerControl(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", MinPowerSecret)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	for name, tc := range map[string]struct {
		power       *PowerControl
		field, says string // empty: nothing is wrong
	}{
		"nothing":        {nil, "", ""},
		"a person":       {&PowerControl{Driver: PowerManual}, "", ""},
		"http":           {&PowerControl{Driver: PowerWebhook, URL: "http://10.0.0.9:8080/power?rack=1", Secret: secret}, "", ""},
		"https, own CA":  {&PowerControl{Driver: PowerWebhook, URL: "https://[2001:db8::1]/", Secret: secret, CA: cert + "\n" + cert}, "", ""},
		"secret hidden":  {&PowerControl{Driver: PowerWebhook, URL: "http://a/", Secret: Redacted}, "", ""},
		"no driver":      {&PowerControl{}, "spec.power.driver", `"" is not known (manual or webhook)`},
		"another driver": {&PowerControl{Driver: "redfish"}, "spec.power.driver", `"redfish" is not known`},
		"person and URL": {&PowerControl{Driver: PowerManual, URL: "http://a"}, "spec.power", "the driver manual does not read"},
		"no URL":         {&PowerControl{Driver: PowerWebhook, Secret: secret}, "spec.power.url", "write it as https://power.example.org/rack1"},
		"ftp":            {&PowerControl{Driver: PowerWebhook, URL: "ftp://a/", Secret: secret}, "spec.power.url", "is not an http(s) URL"},
		"no host":        {&PowerControl{Driver: PowerWebhook, URL: "http://:80/", Secret: secret}, "spec.power.url", "is not an http(s) URL"},
		"broken URL":     {&PowerControl{Driver: PowerWebhook, URL: "http://a b/", Secret: secret}, "spec.power.url", "is not an http(s) URL"},
		"password":       {&PowerControl{Driver: PowerWebhook, URL: "http://me:hunter2@a/", Secret: secret}, "spec.power.url", "has a user name in it"},
		"broken, too":    {&PowerControl{Driver: PowerWebhook, URL: "http://me:hunter2@a b/", Secret: secret}, "spec.power.url", "has a user name in it"},
		"long URL":       {&PowerControl{Driver: PowerWebhook, URL: "http://a/" + secret + strings.Repeat("x", MaxPowerURL), Secret: secret}, "spec.power.url", "the limit is 2048"},
		"no secret":      {&PowerControl{Driver: PowerWebhook, URL: "http://a/"}, "spec.power.secret", "has 0 bytes, wanted 16 to 1024 (make one"},
		"short secret":   {&PowerControl{Driver: PowerWebhook, URL: "http://a/", Secret: "hunter2"}, "spec.power.secret", "has 7 bytes"},
		"long secret":    {&PowerControl{Driver: PowerWebhook, URL: "http://a/", Secret: strings.Repeat("s", MaxPowerSecret+1)}, "spec.power.secret", "has 1025 bytes"},
		"CA without TLS": {&PowerControl{Driver: PowerWebhook, URL: "http://a/", Secret: secret, CA: cert}, "spec.power.ca", "is not read for an http URL"},
		"CA is a path":   {&PowerControl{Driver: PowerWebhook, URL: "https://a/", Secret: secret, CA: "/etc/ssl/ca.pem"}, "spec.power.ca", "-----BEGIN CERTIFICATE-----"},
		"CA cut short":   {&PowerControl{Driver: PowerWebhook, URL: "https://a/", Secret: secret, CA: cert + cert[:40]}, "spec.power.ca", "-----BEGIN CERTIFICATE-----"},
		"CA with a key":  {&PowerControl{Driver: PowerWebhook, URL: "https://a/", Secret: secret, CA: cert + key}, "spec.power.ca", "has a PRIVATE KEY in it"},
		"long CA":        {&PowerControl{Driver: PowerWebhook, URL: "https://a/", Secret: secret, CA: strings.Repeat(cert, 1500)}, "spec.power.ca", "the limit is 65536"},
	} {
		h := good()
		h.Spec.Power = tc.power
		err := h.Validate()
		if tc.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var bad *Invalid
		if !errors.As(err, &bad) || len(bad.Errors) != 1 || bad.Errors[0].Field != tc.field || !strings.Contains(bad.Errors[0].Detail, tc.says) {
			t.Errorf("%s: %v, want only %s: …%s…", name, err, tc.field, tc.says)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: the error shows a secret: %v", name, err)
		}
	}
}

func TestPowerSecretIsRedacted(t *testing.T) {
	t.Parallel()
	h := good()
	h.Spec.Power = &PowerControl{Driver: PowerWebhook, URL: "https://a/", Secret: "0123456789abcdef"}
	shown := Redact(h)
	if shown.Spec.Power.Secret != Redacted || shown.Spec.Power.URL != "https://a/" || h.Spec.Power.Secret != "0123456789abcdef" {
		t.Errorf("shown as %+v, kept as %+v", shown.Spec.Power, h.Spec.Power)
	}
}
