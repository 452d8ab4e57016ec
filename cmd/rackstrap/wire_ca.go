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
	"math/big"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// secretStore keeps a value that is made once, sealed.
type secretStore interface {
	Secret(ctx context.Context, name string, create func() ([]byte, error)) ([]byte, error)
}

// identity is what makes this installation itself: workers pin its CA, tokens are
// authenticated by its key.
type identity struct {
	cert     tls.Certificate // leaf and CA, for the worker listener
	caSHA256 string          // of the CA certificate in DER, in hex
	tokenKey []byte
	// installation is this installation's id: made at its first start, kept with the
	// records and thus in a backup. It is the first part of each provider id.
	installation string
}

type caRecord struct {
	Cert []byte `json:"cert"` // DER
	Key  []byte `json:"key"`  // PKCS #8 DER
}

// caLife is long: the CA is pinned by hash at each boot and never shown to a
// browser; replacing it means a new installation.
const caLife = 30 * 365 * 24 * time.Hour

func loadIdentity(ctx context.Context, s secretStore, now time.Time) (identity, error) {
	raw, err := s.Secret(ctx, "installation-ca", func() ([]byte, error) { return makeCA(now) })
	if err != nil {
		return identity{}, fmt.Errorf("installation CA: %w", err)
	}
	key, err := s.Secret(ctx, "boot-token-key", func() ([]byte, error) {
		b := make([]byte, 32)
		_, err := rand.Read(b)
		return b, err
	})
	if err != nil {
		return identity{}, fmt.Errorf("boot token key: %w", err)
	}
	installation, err := s.Secret(ctx, "installation-id", func() ([]byte, error) { return []byte(workflow.NewID(now)), nil })
	if err != nil {
		return identity{}, fmt.Errorf("installation id: %w", err)
	}
	var rec caRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return identity{}, fmt.Errorf("installation CA: %w", err)
	}
	cert, err := issueLeaf(rec, now)
	if err != nil {
		return identity{}, fmt.Errorf("installation CA: %w", err)
	}
	sum := sha256.Sum256(rec.Cert)
	return identity{cert: cert, caSHA256: hex.EncodeToString(sum[:]), tokenKey: key, installation: string(installation)}, nil
}

func makeCA(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "Rackstrap installation CA"},
		NotBefore:             now.Add(-24 * time.Hour),
		NotAfter:              now.Add(caLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
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

// issueLeaf makes a fresh server certificate for this run of the daemon.
func issueLeaf(rec caRecord, now time.Time) (tls.Certificate, error) {
	ca, err := x509.ParseCertificate(rec.Cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	caKey, err := x509.ParsePKCS8PrivateKey(rec.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "rackstrap"},
		DNSNames:     []string{"rackstrap"},
		NotBefore:    now.Add(-24 * time.Hour),
		NotAfter:     now.Add(5 * 365 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca, key.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der, rec.Cert}, PrivateKey: key}, nil
}

func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return new(big.Int).SetBytes(b)
}
