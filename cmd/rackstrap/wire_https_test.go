package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// once keeps secrets in memory, each made once.
type once map[string][]byte

func (o once) Secret(_ context.Context, name string, create func() ([]byte, error)) ([]byte, error) {
	if o[name] == nil {
		b, err := create()
		if err != nil {
			return nil, err
		}
		o[name] = b
	}
	return o[name], nil
}

func testNames() (httpsNames, error) {
	return httpsNames{dns: []string{"localhost", "appliance"}, ips: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP("fd00::1")}}, nil
}

// Our own certificate is the same at each start until its end is near, and is good
// for the machine's names.
func TestOwnCertificate(t *testing.T) {
	t.Parallel()
	kept := once{}
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	first, err := ownCertificate(t.Context(), kept, testNames, start)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(first.Leaf)
	for _, name := range []string{"localhost", "appliance", "127.0.0.1", "fd00::1"} {
		if _, err := first.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: start}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for after, same := range map[time.Duration]bool{0: true, 9 * 365 * 24 * time.Hour: true, httpsLife - httpsRenew - time.Second: true, httpsLife - httpsRenew: false, 2 * httpsLife: false, time.Hour: true} {
		again, err := ownCertificate(t.Context(), kept, testNames, start.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		if (fingerprint(again) == fingerprint(first)) != same {
			t.Errorf("after %v: the same is %v", after, !same)
		}
		if now := start.Add(after); now.Before(again.Leaf.NotBefore) || now.After(again.Leaf.NotAfter) {
			t.Errorf("after %v it is not valid", after)
		}
	}
	if names, err := machineNames(); err != nil || len(names.dns) < 2 || len(names.ips) == 0 {
		t.Errorf("%+v, %v", names, err)
	}
}

func writePair(t *testing.T, dir string, at time.Time) (cert, key, print string) {
	t.Helper()
	c, err := ownCertificate(t.Context(), once{}, testNames, at)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, fingerprint(c)
}

// Given files are read again when they change; while they do not belong together the
// old certificate stays.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, first := writePair(t, dir, time.Now())
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		k, err := newCertKeeper(t.Context(), httpsConfig{Cert: cert, Key: key}, nil, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || k.fingerprint() != first {
			t.Fatalf("%v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- k.run(ctx) }()
		look := func() string { time.Sleep(2 * certLook); synctest.Wait(); return k.fingerprint() }
		if look() != first {
			t.Error("it changed by itself")
		}
		if err := os.WriteFile(key, []byte("half a key"), 0o600); err != nil {
			t.Fatal(err)
		}
		if look() != first {
			t.Error("a broken key was taken")
		}
		_, _, second := writePair(t, dir, time.Now())
		if look() != second {
			t.Error("a new pair was not taken")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(log.String(), "the old one stays") || strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("log: %s", log.String())
	}
	_, err := newCertKeeper(t.Context(), httpsConfig{Cert: filepath.Join(dir, "none"), Key: key}, nil, time.Now, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "https.cert") {
		t.Errorf("got %v", err)
	}
}

// The listener speaks HTTP/2 over TLS 1.2 and later, refuses older ones and large
// headers, and shows the certificate whose fingerprint it says.
func TestHTTPSServer(t *testing.T) {
	t.Parallel()
	k, err := newCertKeeper(t.Context(), httpsConfig{}, once{}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := listenLimited("127.0.0.1:0", maxHTTPSPerAddr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- serveHTTP(ctx, l, k.server(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })))
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	ask := func(c *tls.Config, header string) (*http.Response, error) {
		tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, DisableKeepAlives: true}
		r, err := http.NewRequestWithContext(ctx, "GET", "https://"+l.Addr().String(), nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("X-Long", header)
		return (&http.Client{Transport: tr}).Do(r)
	}
	roots := x509.NewCertPool()
	roots.AddCert(k.now.Load().Leaf)
	resp, err := ask(&tls.Config{RootCAs: roots}, "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "HTTP/2.0" || fingerprint(&tls.Certificate{Certificate: [][]byte{resp.TLS.PeerCertificates[0].Raw}}) != k.fingerprint() {
		t.Errorf("%s, %v", body, err)
	}
	if resp, err := ask(&tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, ""); err == nil {
		_ = resp.Body.Close()
		t.Error("TLS 1.1 is taken")
	}
	resp, err = ask(&tls.Config{RootCAs: roots}, strings.Repeat("x", 2*maxHeader))
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a large header: %d", resp.StatusCode)
		}
	}
}
