package client

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
)

// DefaultPort is where the daemon serves HTTPS.
const DefaultPort = "7443"

// transport is how o says to reach the daemon: where that is in words, the base of
// its URLs, and what makes connections.
func (o Options) transport() (where, base string, t *http.Transport, err error) {
	t = &http.Transport{ExpectContinueTimeout: 10 * time.Second, IdleConnTimeout: time.Minute}
	if o.URL == "" {
		socket := o.Socket
		if socket == "" {
			socket = DefaultSocket
		}
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
		}
		t.DisableCompression = true // it would cost more than it saves
		return socket, "http://rackstrap" + api.Base, t, nil
	}
	u, err := serverURL(o.URL)
	if err != nil {
		return o.URL, "", t, err
	}
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 10 * time.Second
	t.ForceAttemptHTTP2 = true
	t.TLSClientConfig, err = o.tls()
	return u, u + api.Base, t, err
}

// Check says what is wrong with the options, without asking anybody.
func (o Options) Check() error {
	_, _, _, err := o.transport()
	return err
}

// ServerURL is the URL of a daemon as people name it: the scheme https and the port
// 7443 may be left out together.
func ServerURL(s string) (string, error) { return serverURL(s) }

func serverURL(s string) (string, error) {
	full := s
	if !strings.Contains(s, "://") {
		full = "https://" + s
	}
	u, err := url.Parse(full)
	switch {
	case err != nil || u.Hostname() == "":
		return "", fmt.Errorf("%.120q is no address of a daemon (write it as https://appliance.example:%s)", s, DefaultPort)
	case u.Scheme != "https":
		return "", fmt.Errorf("%.120q is not https: a token must not travel in clear (write https://%s)", s, u.Host)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "", fmt.Errorf("%.120q has more than a host and a port (write it as https://%s)", u.Redacted(), u.Host)
	}
	if full != s && u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), DefaultPort)
	}
	return "https://" + u.Host, nil
}

func (o Options) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	pem, from := o.CA, "the CA"
	if len(pem) == 0 && o.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(o.CAFile); err != nil {
			return nil, err
		}
		from = o.CAFile
	}
	if len(pem) > 0 || o.CAFile != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in it (PEM is wanted: -----BEGIN CERTIFICATE-----)", from)
		}
	}
	if o.Fingerprint == "" {
		return c, nil
	}
	want, err := ParseFingerprint(o.Fingerprint)
	if err != nil {
		return nil, err
	}
	// the certificate itself is known, so that neither its names nor who signed it
	// say more, unless a CA is asked for too
	c.InsecureSkipVerify = c.RootCAs == nil
	c.VerifyConnection = func(s tls.ConnectionState) error {
		got := sha256.Sum256(s.PeerCertificates[0].Raw)
		if subtle.ConstantTimeCompare(got[:], want) != 1 {
			return &OtherCertificate{Got: hex.EncodeToString(got[:]), Want: hex.EncodeToString(want)}
		}
		return nil
	}
	return c, nil
}

// OtherCertificate is a server that shows another certificate than the one that was
// pinned.
type OtherCertificate struct{ Got, Want string }

func (e *OtherCertificate) Error() string {
	return fmt.Sprintf("the server shows another certificate: sha256 %s, pinned is %s", e.Got, e.Want)
}

// ParseFingerprint reads a SHA-256 in hex, with or without colons and `sha256:`.
func ParseFingerprint(s string) ([]byte, error) {
	text := strings.ToLower(s)
	for _, prefix := range []string{"sha256 fingerprint=", "sha256:", "sha256/"} {
		text = strings.TrimPrefix(text, prefix)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), ":", ""))
	if err != nil || len(b) != sha256.Size {
		return nil, fmt.Errorf("%.100q is no SHA-256 fingerprint (64 hexadecimal digits; on the appliance: rackstrap version)", s)
	}
	return b, nil
}

// Certificate connects to the daemon at o.URL and says which certificate it shows,
// as a fingerprint, and whether the CA of o, or those of the system, vouch for it.
// No token is sent. An *Unreachable where nobody answers.
func Certificate(ctx context.Context, o Options) (fingerprint string, trusted bool, err error) {
	o.Fingerprint = ""
	where, _, t, err := o.transport()
	if err != nil {
		return "", false, err
	}
	check := t.TLSClientConfig.Clone()
	t.TLSClientConfig.InsecureSkipVerify = true
	t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
		leaf := s.PeerCertificates[0]
		sum := sha256.Sum256(leaf.Raw)
		fingerprint = hex.EncodeToString(sum[:])
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: check.RootCAs, Intermediates: between, DNSName: s.ServerName})
		trusted = err == nil
		return nil
	}
	defer t.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where+"/openapi.json", nil)
	if err != nil {
		return "", false, err
	}
	resp, err := (&http.Client{Transport: t, CheckRedirect: noRedirect}).Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		return "", false, unreachable(where, err)
	}
	return fingerprint, trusted, resp.Body.Close()
}

// noRedirect keeps a token from being sent elsewhere; the daemon never redirects.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// unreachable is a request that got no answer.
func unreachable(where string, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return &Unreachable{where, err}
}
