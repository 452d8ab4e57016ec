package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/web"
)

// files serves the files of the UI from a folder, and passes everything else on to the
// appliance: who works on the UI builds no binary to see a change.
type files struct {
	server *http.Server
	url    string
}

func serveFiles(ctx context.Context, dist, appliance string) (*files, error) {
	to, err := url.Parse(appliance)
	if err != nil {
		return nil, err
	}
	cert, err := selfSigned()
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // which the appliance compares with Origin
		},
		FlushInterval: -1,                                                                                                    // events
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}, //nolint:gosec // our own, on loopback
	}
	page := filepath.Join(dist, "index.html")
	f := &files{url: "https://" + ln.Addr().String()}
	f.server = &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		file := filepath.Join(dist, filepath.FromSlash(filepath.Clean("/"+path)))
		info, err := os.Stat(file)
		switch {
		case strings.HasPrefix(path, "/api/") || path == "/openapi.json" || strings.HasPrefix(path, "/docs") || path == "/metrics":
			proxy.ServeHTTP(w, r)
			return
		case err != nil || info.IsDir():
			file = page
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", web.Policy)
		http.ServeFile(w, r, file)
	})}
	go func() { _ = f.server.ServeTLS(ln, "", "") }() // until Close
	return f, nil
}

// Close ends it.
func (f *files) Close() { _ = f.server.Close() }

// selfSigned is a certificate for this run.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 7), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
