package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/rackstrap/rackstrap/web"
)

const (
	// certLook is how often certificate files are looked at.
	certLook = 10 * time.Second
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 32 << 10
)

// certKeeper has the certificate of the HTTPS listener, and replaces it when its
// files change or, where we made it, when it nears its end.
type certKeeper struct {
	// load reads the certificate as it is now.
	load func(ctx context.Context) (*tls.Certificate, error)
	// changed reports whether load would read another one; asked every certLook.
	changed func() bool
	log     *slog.Logger
	now     atomic.Pointer[tls.Certificate]
}

// newCertKeeper keeps the certificate of the files that the configuration names, or
// our own.
func newCertKeeper(ctx context.Context, c httpsConfig, s secretStore, clock func() time.Time, log *slog.Logger) (*certKeeper, error) {
	k := &certKeeper{log: log}
	if c.Cert != "" {
		seen := ""
		k.load = func(context.Context) (*tls.Certificate, error) {
			seen = stamp(c.Cert, c.Key)
			pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			if err != nil {
				return nil, fmt.Errorf("https.cert %s, https.key %s: %w (give PEM files that belong together, or leave both out)", c.Cert, c.Key, err)
			}
			return &pair, nil
		}
		k.changed = func() bool { return stamp(c.Cert, c.Key) != seen }
	} else {
		k.load = func(ctx context.Context) (*tls.Certificate, error) {
			return ownCertificate(ctx, s, machineNames, clock())
		}
		k.changed = func() bool { return !clock().Before(k.now.Load().Leaf.NotAfter.Add(-httpsRenew)) }
	}
	cert, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	k.now.Store(cert)
	return k, nil
}

// stamp changes when one of the files is written or replaced.
func stamp(files ...string) string {
	out := ""
	for _, f := range files {
		if i, err := os.Stat(f); err == nil {
			out += fmt.Sprint(i.ModTime().UnixNano(), i.Size(), " ")
		}
	}
	return out
}

// fingerprint is that of the certificate that is shown now.
func (k *certKeeper) fingerprint() string { return fingerprint(k.now.Load()) }

// run replaces the certificate when there is another, until ctx ends. One that
// cannot be read leaves the one that is there: a certificate is often written before
// its key.
func (k *certKeeper) run(ctx context.Context) error {
	tick := time.NewTicker(certLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !k.changed() {
			continue
		}
		cert, err := k.load(ctx)
		if err != nil {
			k.log.Error("the HTTPS certificate changed and cannot be read; the old one stays", "err", err)
			continue
		}
		k.now.Store(cert)
		k.log.Info("HTTPS certificate replaced", "fingerprint", k.fingerprint())
	}
}

// server is the HTTPS server for h. Bodies and answers have limits of their own: an
// image takes as long as it takes, an event stream does not end.
func (k *certKeeper) server(ctx context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.now.Load(), nil },
		},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		// each stream may hold a body: what one connection can make us keep is bounded
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 32},
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(k.log.Handler(), slog.LevelDebug), // strangers' handshakes
		BaseContext:    func(net.Listener) context.Context { return ctx },   // event streams end with us
		ConnContext:    knowing,
	}
}

// httpsPart serves the API to callers with tokens, and the web UI to everybody; it comes
// after restPart.
func (a *appliance) httpsPart() (part, error) {
	if a.https == nil || a.api == nil {
		return part{name: "HTTPS", run: func(ctx context.Context) error { <-ctx.Done(); return nil }}, nil
	}
	l, err := listenLimited(a.c.HTTPS.Listen, maxHTTPSPerAddr)
	if err != nil {
		return part{}, fmt.Errorf("%w (set https.listen to another address, or to \"\" for none)", err)
	}
	a.log.Info("HTTPS", "listen", a.c.HTTPS.Listen, "fingerprint", a.fingerprint())
	return part{name: "HTTPS", run: func(ctx context.Context) error {
		done := make(chan error, 1)
		go func() { done <- a.https.run(ctx) }()
		err := serveHTTP(ctx, l, a.https.server(ctx, besideUI(a.api.Remote(), web.Handler(version))))
		if err == nil {
			err = <-done
		}
		return err
	}}, nil
}

// fingerprint is that of the HTTPS certificate; empty where there is no HTTPS.
func (a *appliance) fingerprint() string {
	if a.https == nil {
		return ""
	}
	return a.https.fingerprint()
}
