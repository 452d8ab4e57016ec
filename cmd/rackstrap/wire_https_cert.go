package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// httpsLife is long, because callers pin the certificate: each renewal makes all
	// of them look again.
	httpsLife = 10 * 365 * 24 * time.Hour
	// httpsRenew is how long before its end a certificate of ours is replaced.
	httpsRenew = 30 * 24 * time.Hour
)

// httpsNames are what our own certificate is valid for.
type httpsNames struct {
	dns []string
	ips []net.IP
}

// machineNames are the host name and the addresses that the machine has now.
func machineNames() (httpsNames, error) {
	n := httpsNames{dns: []string{"localhost", "rackstrap"}}
	if host, err := os.Hostname(); err == nil && hardware.ValidHostname(host) == nil {
		short, _, _ := strings.Cut(host, ".")
		n.dns = append(n.dns, host, short)
	}
	slices.Sort(n.dns)
	n.dns = slices.Compact(n.dns)
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return n, err
	}
	for _, a := range addrs {
		if p, ok := a.(*net.IPNet); ok && !p.IP.IsLinkLocalUnicast() && !p.IP.IsMulticast() {
			n.ips = append(n.ips, p.IP)
		}
	}
	return n, nil
}

// ownCertificate is the certificate that we made ourselves, sealed in the store so
// that its fingerprint survives restarts and restores. The first one is number 1; one
// that nears its end is followed by the next number.
func ownCertificate(ctx context.Context, s secretStore, names func() (httpsNames, error), now time.Time) (*tls.Certificate, error) {
	for n := 1; ; n++ {
		raw, err := s.Secret(ctx, fmt.Sprintf("https-certificate-%d", n), func() ([]byte, error) { return makeHTTPS(names, now) })
		if err != nil {
			return nil, fmt.Errorf("HTTPS certificate: %w", err)
		}
		c, err := readHTTPS(raw)
		if err != nil {
			return nil, fmt.Errorf("HTTPS certificate: %w", err)
		}
		// one that begins later was made while the clock was wrong
		if now.After(c.Leaf.NotBefore) && now.Before(c.Leaf.NotAfter.Add(-httpsRenew)) {
			return c, nil
		}
	}
}

func makeHTTPS(names func() (httpsNames, error), now time.Time) ([]byte, error) {
	n, err := names()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "Rackstrap API"},
		DNSNames:     n.dns,
		IPAddresses:  n.ips,
		// the clocks of those who call may be behind
		NotBefore:             now.Add(-24 * time.Hour),
		NotAfter:              now.Add(httpsLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(caRecord{Cert: der, Key: pkcs8})
}

func readHTTPS(raw []byte) (*tls.Certificate, error) {
	var rec caRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(rec.Cert)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(rec.Key)
	return &tls.Certificate{Certificate: [][]byte{rec.Cert}, PrivateKey: key, Leaf: leaf}, err
}

// fingerprint is how people compare certificates: SHA-256 of the DER, in hex.
func fingerprint(c *tls.Certificate) string {
	sum := sha256.Sum256(c.Certificate[0])
	return hex.EncodeToString(sum[:])
}
