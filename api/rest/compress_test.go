package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
)

var cursors = regexp.MustCompile(`"cursor":\d+`)

// Lists and large records are compressed for those who take it; what is small, secret,
// streamed or no JSON is not. Both ways the answer is the same.
func TestCompression(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for i := range 20 {
		g.machine(byte(i), fmt.Sprintf("m%02d", i), "team=a")
	}
	for i := range 10 {
		g.token(fmt.Sprintf("t%d", i), hardware.TokenSpec{Role: hardware.RoleViewer})
	}
	root := g.token("root", hardware.TokenSpec{Role: hardware.RoleAdmin})
	ask := func(method, path, accept, body string) (*http.Response, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
		g.must(err)
		r.Header.Set("Authorization", "Bearer "+root)
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		if strings.Contains(path, "follow") {
			r.Header.Set("Accept", "text/event-stream")
		}
		resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
		g.must(err)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		g.must(err)
		return resp, raw
	}
	for _, tc := range []struct {
		method, path, accept string
		packed               bool
	}{
		{"GET", api.Base + "/hardware", "gzip", true},
		{"GET", api.Base + "/hardware", "br, gzip;q=0.5", true},
		{"GET", api.Base + "/hardware", "deflate, GZIP", true},
		{"GET", api.Base + "/summaries", "gzip", true},
		{"GET", api.Base + "/events", "gzip", true},
		{"POST", api.Base + "/bulk?dryRun=true", "gzip", true},
		{"GET", api.Base + "/hardware", "", false},
		{"GET", api.Base + "/hardware", "identity", false},
		{"GET", api.Base + "/hardware", "gzip;q=0", false},
		{"GET", api.Base + "/hardware", "br", false},
		{"GET", api.Base + "/hardware/m01", "gzip", false},
		{"GET", api.Base + "/hardware/nobody", "gzip", false},
		{"GET", api.Base + "/hardware?limit=1", "gzip", false},
		{"GET", api.Base + "/events?follow=false", "gzip", false},
		{"GET", api.Base + "/tokens", "gzip", false},
		{"GET", "/metrics", "gzip", false},
		{"HEAD", api.Base + "/hardware", "gzip", true},
	} {
		body := ""
		if tc.method == "POST" {
			body = `{"verb":"hold","all":true}`
		}
		resp, raw := ask(tc.method, tc.path, tc.accept, body)
		plain, want := ask(tc.method, tc.path, "", body)
		if resp.StatusCode != plain.StatusCode || (resp.Header.Get("Content-Encoding") == "gzip") != tc.packed {
			t.Errorf("%s %s (%s): %d %v", tc.method, tc.path, tc.accept, resp.StatusCode, resp.Header)
			continue
		}
		if tc.packed && tc.method != "HEAD" {
			z, err := gzip.NewReader(bytes.NewReader(raw))
			g.must(err)
			if resp.Header.Get("Vary") != "Accept-Encoding" || len(raw) > len(want)/2 {
				t.Errorf("%s: %d bytes of %d, %v", tc.path, len(raw), len(want), resp.Header)
			}
			raw, err = io.ReadAll(z)
			g.must(err)
		}
		// each use of a token is a write, which moves the cursor on
		raw, want = cursors.ReplaceAll(raw, nil), cursors.ReplaceAll(want, nil)
		if tc.path != api.Base+"/events?follow=false" && !bytes.Equal(raw, want) {
			t.Errorf("%s %s: another answer: %.200s, want %.200s", tc.method, tc.path, raw, want)
		}
	}
}

// A list that was cut off is no whole one when it is unpacked, and many of them leave
// the compressors in place.
func TestCompressionOfCutLists(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for i := range 30 {
		g.machine(byte(i), fmt.Sprintf("m%02d", i), "team=a")
	}
	h := rest.New(g.deps)
	for range 40 {
		func() {
			defer func() { _ = recover() }()
			r := httptest.NewRequest("GET", api.Base+"/hardware", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			h.ServeHTTP(torn{http.Header{}}, r)
		}()
	}
	r := httptest.NewRequest("GET", api.Base+"/hardware", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatalf("after 40 that were cut off: %v, %v", w.Header(), err)
	}
	var list api.List[hardware.Hardware]
	if err := json.NewDecoder(z).Decode(&list); err != nil || len(list.Items) != 30 {
		t.Errorf("%d, %v", len(list.Items), err)
	}
}

// torn is a connection that breaks in the middle of a handler.
type torn struct{ header http.Header }

func (t torn) Header() http.Header       { return t.header }
func (t torn) WriteHeader(int)           {}
func (t torn) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }
