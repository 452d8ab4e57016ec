// Package fetch gets image files from http and https servers, in several tries where
// one is not enough. It believes no header that it can check, and everything it
// reads is bounded.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// File takes the bytes, and keeps them between tries.
type File interface {
	io.Writer
	// Size is how many bytes are there.
	Size() int64
	// Mark is what Begin was told of them; empty where there are none.
	Mark() string
	// Begin drops what is there.
	Begin(mark string) error
	// Room says whether so many more bytes fit.
	Room(n int64) error
}

// Source is a file on a server.
type Source struct {
	// URL is http or https.
	URL string
	// CA are PEM certificates to trust besides the usual ones.
	CA string
	// Checked: the caller knows a checksum. Only then may https lead to http, and a
	// file be taken whose end nothing marks.
	Checked bool
	// Strangers: whoever gave the URL may not reach what listens on this machine only, nor
	// link-local addresses. Without it only redirects are kept from there.
	Strangers bool
}

// Options of a Client.
type Options struct {
	// Proxy says which proxy a request goes through; nil is none.
	Proxy func(*url.URL) (*url.URL, error)
	// CA are PEM certificates to trust besides the system's.
	CA []byte
	// Stall is how long a transfer may bring nearly nothing; a minute where 0.
	Stall time.Duration
	// Agent is the User-Agent.
	Agent string
}

// Client fetches. It may be used by several goroutines.
type Client struct{ o Options }

// New makes a Client; the error is about o.CA.
func New(o Options) (*Client, error) {
	if o.Stall == 0 {
		o.Stall = time.Minute
	}
	if len(o.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(o.CA) {
		return nil, errors.New("holds no PEM certificate (it begins with -----BEGIN CERTIFICATE-----)")
	}
	return &Client{o}, nil
}

const (
	// stallBytes is nearly nothing.
	stallBytes   = 64 << 10
	maxRedirects = 10
	maxHeaders   = 64 << 10
	headerWait   = 30 * time.Second
)

// Error is why a try failed, in words for people: no query of any URL is in it, for
// those may be secret.
type Error struct {
	Text string
	// Final: another try would end the same way.
	Final bool
	// Changed: the file on the server is not the one that the last try began with.
	Changed bool
	// After is when the server wants to be asked again; 0 is "it did not say".
	After time.Duration
	Err   error // may be nil
}

func (e *Error) Error() string { return e.Text }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

func final(format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Final: true}
}

func passing(format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...)}
}

// httpClient is for one source: certificates differ.
func (c *Client) httpClient(src Source) (*http.Client, func(), error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a machine without any
	}
	roots.AppendCertsFromPEM(c.o.CA)
	if src.CA != "" && !roots.AppendCertsFromPEM([]byte(src.CA)) {
		return nil, nil, final("spec.ca holds no PEM certificate")
	}
	g := &guard{strangers: src.Strangers}
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: headerWait, Control: g.dial}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   headerWait,
		ResponseHeaderTimeout: headerWait,
		// A server may say that it packed what it sends. The bytes as they travel are
		// what a checksum is of, and what Range counts.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaders,
		ForceAttemptHTTP2:      true,
	}
	if c.o.Proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) {
			u, err := c.o.Proxy(r.URL)
			g.proxied.Store(u != nil)
			return u, err
		}
	}
	h := &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		r.Header.Del("Referer") // its query may be secret
		if err := g.redirect(via[0].URL, r.URL); err != nil {
			return err
		}
		switch {
		case len(via) >= maxRedirects:
			return final("%d redirects do not end", len(via))
		case r.URL.Scheme != "http" && r.URL.Scheme != "https":
			return final("the server redirects to %.20s:, which is not followed (http and https are)", r.URL.Scheme)
		case r.URL.User != nil:
			return final("the server redirects to a URL with a password")
		case r.URL.Scheme == "http" && via[0].URL.Scheme == "https" && !src.Checked:
			return final("the server redirects from https to http, which anybody can alter (give a checksum)")
		}
		return nil
	}}
	return h, t.CloseIdleConnections, nil
}

// do sends one request.
func (c *Client) do(ctx context.Context, h *http.Client, src Source, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, src.URL, nil)
	if err != nil || (r.URL.Scheme != "http" && r.URL.Scheme != "https") || r.URL.User != nil {
		return nil, final("%.200q is not an http(s) URL without a password", src.URL)
	}
	if to, err := netip.ParseAddr(r.URL.Hostname()); err == nil && src.Strangers && ours(to) {
		return nil, localHere() // a proxy might go there
	}
	r.Header = header
	r.Header.Set("User-Agent", c.o.Agent)
	r.Header.Set("Accept", "*/*")
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := h.Do(r)
	if err != nil {
		return nil, explain(err)
	}
	return resp, nil
}

// explain tells what passes from what does not.
func explain(err error) error {
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // ue has the whole URL in it
	}
	e := &Error{Text: err.Error(), Err: err}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		e.Final, e.Text = true, "the server's certificate is of an authority that is not known here (give it: spec.ca, `rackstrap image add --ca FILE`, or images.ca in the configuration)"
	case errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &record):
		e.Final = true
	case errors.As(err, &dns):
		e.Final = dns.IsNotFound
		e.Text = fmt.Sprintf("host name %.100q: %s (is it right, and is a proxy needed? images.proxy in the configuration)", dns.Name, dns.Err)
	}
	return e
}

// status says what an answer that is no file means.
func status(resp *http.Response) error {
	text := fmt.Sprintf("the server says %.60s", resp.Status)
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		return &Error{Text: text, After: retryAfter(resp.Header.Get("Retry-After"))}
	case code == http.StatusNotFound, code == http.StatusGone:
		return final("%s (check the URL)", text)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return final("%s (it wants to know who asks; serve the image without a password, or upload it)", text)
	case code == http.StatusProxyAuthRequired:
		return final("the proxy wants a password (images.proxy: http://USER:PASSWORD@HOST:PORT)")
	}
	return final("%s", text)
}

func retryAfter(s string) time.Duration {
	d, err := time.ParseDuration(s + "s")
	if err != nil || d < 0 {
		return 0
	}
	return min(d, 5*time.Minute)
}

// Small fetches a text of at most limit bytes.
func (c *Client) Small(ctx context.Context, src Source, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Stall)
	defer cancel()
	h, done, err := c.httpClient(src)
	if err != nil {
		return nil, err
	}
	defer done()
	resp, err := c.do(ctx, h, src, http.Header{})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, status(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, explain(err)
	}
	if int64(len(b)) > limit {
		return nil, final("it has more than %d bytes", limit)
	}
	return b, nil
}
