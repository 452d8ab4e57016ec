package worker

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// Trust is whom the worker believes, and who it is itself: an installation's CA,
// known by its hash, and a key that is made at each boot and leaves memory never.
type Trust struct {
	ca   [32]byte
	cert tls.Certificate

	mu sync.Mutex
	// now is nil until the clock is set.
	now     func() time.Time
	refused error
}

// NewTrust makes a key and pins the CA certificate with that sha256.
func NewTrust(ca [32]byte) (*Trust, error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("worker key: %w", err)
	}
	// The server looks at the key only. The dates fit any clock: this one is not set.
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "rackstrap worker"},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280 section 4.1.2.5
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, &x509.Certificate{Subject: pkix.Name{CommonName: "rackstrap worker"}}, pub, key)
	if err != nil {
		return nil, fmt.Errorf("worker certificate: %w", err)
	}
	return &Trust{ca: ca, cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// ClockSet makes the dates of certificates count from now on.
func (t *Trust) ClockSet(now func() time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = now
}

// Refused is why the server of the latest handshake was not believed, or nil.
func (t *Trust) Refused() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused
}

// Config is the worker's side of TLS. Go's own verification is off because it wants
// a name and dates: the address of the server is what the boot script says, and any
// appliance of the installation may have it; the CA says who it is.
func (t *Trust) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{t.cert},
		NextProtos:         []string{"h2"},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection judges instead
		VerifyConnection: func(cs tls.ConnectionState) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.refused = verifyChain(cs.PeerCertificates, t.ca, t.now)
			return t.refused
		},
	}
}

// clockSlack is how far the clocks of worker and appliance may be apart when dates
// are judged: a certificate may have been made just now.
const clockSlack = time.Hour

// verifyChain accepts a chain whose leaf is signed by the certificate with the
// pinned hash, which must be a CA and in the chain. now is nil where dates do not
// count. It does not judge names.
func verifyChain(chain []*x509.Certificate, pin [32]byte, now func() time.Time) error {
	if len(chain) == 0 {
		return errors.New("tls: the server showed no certificate")
	}
	leaf := chain[0]
	var ca *x509.Certificate
	for _, c := range chain {
		if sha256.Sum256(c.Raw) == pin {
			ca = c
		}
	}
	switch {
	case ca == nil:
		return fmt.Errorf("tls: the server does not belong to the installation that wrote the boot script (none of its %d certificates has the sha256 %x…)", len(chain), pin[:4])
	case !ca.IsCA || !ca.BasicConstraintsValid:
		return errors.New("tls: the certificate that the boot script names is no CA")
	case leaf.Equal(ca):
		return errors.New("tls: the server shows the installation's CA as its own certificate")
	}
	if err := leaf.CheckSignatureFrom(ca); err != nil {
		return fmt.Errorf("tls: the server's certificate is not signed by the installation's CA: %w", err)
	}
	if len(leaf.ExtKeyUsage) > 0 && !hasUsage(leaf, x509.ExtKeyUsageServerAuth) {
		return errors.New("tls: the server's certificate is not made for servers")
	}
	if now == nil {
		return nil
	}
	for _, c := range []*x509.Certificate{leaf, ca} {
		if t := now(); t.Add(clockSlack).Before(c.NotBefore) || t.Add(-clockSlack).After(c.NotAfter) {
			return fmt.Errorf("tls: the certificate %q is valid from %s to %s, and the clock says %s",
				c.Subject.CommonName, c.NotBefore.Format(time.DateTime), c.NotAfter.Format(time.DateTime), t.UTC().Format(time.DateTime))
		}
	}
	return nil
}

func hasUsage(c *x509.Certificate, want x509.ExtKeyUsage) bool {
	for _, u := range c.ExtKeyUsage {
		if u == want || u == x509.ExtKeyUsageAny {
			return true
		}
	}
	return false
}
