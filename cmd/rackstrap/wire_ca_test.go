package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pinned checks that the identity's leaf is signed by the CA that workers pin, as
// a worker does at a time of its own, and returns the CA.
func pinned(t *testing.T, id identity, at time.Time) *x509.Certificate {
	t.Helper()
	if len(id.cert.Certificate) != 2 || len(id.tokenKey) != 32 {
		t.Fatalf("%d certificates, a key of %d bytes", len(id.cert.Certificate), len(id.tokenKey))
	}
	sum := sha256.Sum256(id.cert.Certificate[1])
	if hex.EncodeToString(sum[:]) != id.caSHA256 {
		t.Fatalf("the pin %s is not of the CA that is sent", id.caSHA256)
	}
	leaf, err := x509.ParseCertificate(id.cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(id.cert.Certificate[1])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "rackstrap", CurrentTime: at}); err != nil {
		t.Errorf("at %v: %v", at, err)
	}
	if leaf.IsCA || !ca.IsCA || !ca.MaxPathLenZero {
		t.Errorf("leaf is CA: %t, CA is CA: %t", leaf.IsCA, ca.IsCA)
	}
	return ca
}

// TestIdentityStays: a restart of the daemon changes nothing that a running worker
// has pinned or was given; another installation is another one.
func TestIdentityStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	db, closeIt := openStore(t, dir)
	first, err := loadIdentity(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	pinned(t, first, now)
	closeIt()

	db, _ = openStore(t, dir)
	later := now.Add(20 * 365 * 24 * time.Hour)
	again, err := loadIdentity(t.Context(), db, later)
	if err != nil {
		t.Fatal(err)
	}
	pinned(t, again, later)
	if len(first.installation) != 26 || again.installation != first.installation {
		t.Errorf("the installation is %q, was %q", again.installation, first.installation)
	}
	if again.caSHA256 != first.caSHA256 || !bytes.Equal(again.tokenKey, first.tokenKey) {
		t.Error("the identity changed with a restart")
	}
	if bytes.Equal(again.cert.Certificate[0], first.cert.Certificate[0]) {
		t.Error("the leaf is the old one, which ends one day")
	}

	other, _ := openStore(t, t.TempDir())
	third, err := loadIdentity(t.Context(), other, now)
	if err != nil {
		t.Fatal(err)
	}
	pinned(t, third, now)
	if third.caSHA256 == first.caSHA256 || bytes.Equal(third.tokenKey, first.tokenKey) {
		t.Error("two installations have one identity")
	}
}

// TestIdentityIsSealed: the CA's key and the token key are not in the file as such.
func TestIdentityIsSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, closeIt := openStore(t, dir)
	id, err := loadIdentity(t.Context(), db, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	closeIt()
	data, err := os.ReadFile(filepath.Join(dir, "rackstrap.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string][]byte{"token key": id.tokenKey, "CA record": []byte(`{"cert":`)} {
		if bytes.Contains(data, secret) {
			t.Errorf("the %s is in the store in clear", name)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "seal.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the seal's key: %v, %v", info, err)
	}
}

// brokenSecrets gives text that is no record of ours.
type brokenSecrets struct{ text string }

func (b brokenSecrets) Secret(context.Context, string, func() ([]byte, error)) ([]byte, error) {
	return []byte(b.text), nil
}

func TestIdentityBroken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "{}", `{"cert":"AAAA","key":"AAAA"}`} {
		if _, err := loadIdentity(t.Context(), brokenSecrets{text}, time.Now()); err == nil || !strings.HasPrefix(err.Error(), "installation CA: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
