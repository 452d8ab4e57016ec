package client_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api/client"
)

func TestServerURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want, err string }{
		{"appliance", "https://appliance:7443", ""},
		{"appliance:8443", "https://appliance:8443", ""},
		{"10.0.0.1", "https://10.0.0.1:7443", ""},
		{"[fd00::1]", "https://[fd00::1]:7443", ""},
		{"https://appliance.example", "https://appliance.example", ""},
		{"https://appliance:7443/", "https://appliance:7443", ""},
		{"http://appliance:7443", "", "must not travel in clear"},
		{"https://appliance/api/v1", "", "more than a host and a port"},
		{"https://root:pw@appliance", "", "more than a host and a port"},
		{"", "", "no address of a daemon"},
		{"https://", "", "no address of a daemon"},
	} {
		got, err := client.ServerURL(tc.in)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %q, %v", tc.in, got, err)
		}
	}
}

// Who the server is, is found by a pinned certificate, or a CA; the token goes to
// nobody else.
func TestTLS(t *testing.T) {
	t.Parallel()
	var seen []string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if strings.HasSuffix(r.URL.Path, "/version") {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(`{"name":"ci","role":"viewer"}`))
	}))
	t.Cleanup(srv.Close)
	sum := sha256.Sum256(srv.Certificate().Raw)
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	var colons []string
	for _, b := range sum {
		colons = append(colons, strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		o    client.Options
		want string
	}{
		{"pinned", client.Options{Fingerprint: right}, ""},
		{"pinned, as openssl writes it", client.Options{Fingerprint: strings.Join(colons, ":")}, ""},
		{"by CA", client.Options{CAFile: ca}, ""},
		{"by both", client.Options{CAFile: ca, Fingerprint: right}, ""},
		{"nothing", client.Options{}, "certificate"},
		{"another pin", client.Options{Fingerprint: wrong}, "another certificate"},
		{"CA, another pin", client.Options{CAFile: ca, Fingerprint: wrong}, "another certificate"},
		{"no pin", client.Options{Fingerprint: "abc"}, "no SHA-256 fingerprint"},
		{"no CA", client.Options{CAFile: ca + "x"}, "no such file"},
		{"in clear", client.Options{URL: "http://127.0.0.1"}, "in clear"},
	} {
		seen = nil
		if tc.o.URL == "" {
			tc.o.URL = srv.URL
		}
		tc.o.Token = "rst_secret"
		c := client.New(tc.o)
		me, err := c.WhoAmI(t.Context())
		c.Close()
		if tc.want == "" {
			if err != nil || me.Name != "ci" || len(seen) != 1 || seen[0] != "Bearer rst_secret" {
				t.Errorf("%s: %v, %v", tc.name, err, seen)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(seen) > 0 {
			t.Errorf("%s: %v, and %d requests came", tc.name, err, len(seen))
		}
		var u *client.Unreachable
		if errors.As(err, &u) && !strings.Contains(u.Hint(), "rackstrap login") {
			t.Errorf("%s: hint %q", tc.name, u.Hint())
		}
	}
	got, trusted, err := client.Certificate(t.Context(), client.Options{URL: srv.URL})
	if err != nil || trusted || got != right {
		t.Errorf("certificate: %s %v %v", got, trusted, err)
	}
	if _, trusted, err := client.Certificate(t.Context(), client.Options{URL: srv.URL, CAFile: ca}); err != nil || !trusted {
		t.Errorf("certificate by CA: %v %v", trusted, err)
	}
	// a token is not carried on to where an answer points
	c := client.New(client.Options{URL: srv.URL, Fingerprint: right, Token: "rst_secret"})
	defer c.Close()
	seen = nil
	if _, err := c.Version(t.Context()); err == nil || len(seen) != 1 {
		t.Errorf("a redirect was followed: %v %v", err, seen)
	}
}
