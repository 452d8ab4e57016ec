package fetch_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/store/image/fetch"
)

// errRoom is a file's.
var errRoom = errors.New("no room")

// memFile is a File in memory.
type memFile struct {
	bytes.Buffer
	mark string
	room int64
}

func (f *memFile) Size() int64  { return int64(f.Len()) }
func (f *memFile) Mark() string { return f.mark }
func (f *memFile) Begin(mark string) error {
	f.Reset()
	f.mark = mark
	return nil
}

func (f *memFile) Room(n int64) error {
	if f.room > 0 && n > f.room {
		return errRoom
	}
	return nil
}

// content is what servers have.
func content() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 64<<10) }

func newClient(t *testing.T, o fetch.Options) *fetch.Client {
	t.Helper()
	c, err := fetch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// whole serves b as a file of that version, as any server does.
func whole(w http.ResponseWriter, r *http.Request, version string, b []byte) {
	w.Header().Set("ETag", `"`+version+`"`)
	http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(b))
}

// half announces all of b and breaks off after a part.
func half(w http.ResponseWriter, version string, b []byte) {
	w.Header().Set("ETag", version)
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	_, _ = w.Write(b[:len(b)/3])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// raw answers with bytes that are no server's of net/http.
func raw(w http.ResponseWriter, answer string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = c.Write([]byte(answer))
	_ = c.Close()
}

// try is what one Get must come to: an error with that text, final, or changed.
type try struct {
	text           string
	final, changed bool
}

// TestGet: tries against a real server, one after the other.
func TestGet(t *testing.T) {
	t.Parallel()
	b := content()
	other := bytes.ToUpper(b)
	plain := func(text string) []try { return []try{{text: text, final: true}} }
	for name, tc := range map[string]struct {
		serve   func(n int, w http.ResponseWriter, r *http.Request)
		path    string
		checked bool
		room    int64
		tries   []try
		want    []byte
	}{
		"at once": {serve: func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, "1", b) }, tries: []try{{}}, want: b},
		"again":   {serve: func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, "1", b) }, tries: []try{{}, {}}, want: b},
		"redirect": {path: "/there", serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				http.Redirect(w, r, "/x?signature=s3cret", http.StatusFound)
				return
			}
			if r.Header.Get("Referer") != "" {
				t.Errorf("it is told %s", r.Header.Get("Referer"))
			}
			whole(w, r, "1", b)
		}, tries: []try{{}}, want: b},
		"cut, then the rest": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			if r.Header.Get("Range") == "" || r.Header.Get("If-Range") != `"1"` {
				t.Errorf("the rest is asked for with %v", r.Header)
			}
			whole(w, r, "1", b)
		}, tries: []try{{text: "the connection broke after"}, {}}, want: b},
		"cut, no validator: anew": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, "", b)
			}
			if r.Header.Get("Range") != "" {
				t.Errorf("the rest of a file is asked for that nothing identifies")
			}
			_, _ = w.Write(b)
		}, tries: []try{{text: "the connection broke after"}, {}}, want: b},
		"cut, weak validator: anew": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `W/"1"`, b)
			}
			w.Header().Set("ETag", `W/"1"`)
			if r.Header.Get("Range") != "" {
				t.Errorf("a weak validator is no identity")
			}
			_, _ = w.Write(b)
		}, tries: []try{{text: "the connection broke after"}, {}}, want: b},
		"cut, changed a second ago: anew": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			if n == 1 {
				half(w, "", b)
			}
			if r.Header.Get("Range") != "" {
				t.Errorf("it may have changed twice in that second")
			}
			_, _ = w.Write(b)
		}, tries: []try{{text: "the connection broke after"}, {}}, want: b},
		"cut, changed a second ago, with a checksum": {checked: true, serve: func(n int, w http.ResponseWriter, r *http.Request) {
			at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
			w.Header().Set("Date", at.Format(http.TimeFormat))
			w.Header().Set("Last-Modified", at.Format(http.TimeFormat))
			if n == 1 {
				half(w, "", b)
			}
			if r.Header.Get("Range") == "" {
				t.Errorf("the rest is asked for with %v", r.Header)
			}
			http.ServeContent(w, r, "x", at, bytes.NewReader(b))
		}, tries: []try{{text: "the connection broke after"}, {}}, want: b},
		"cut, changed long ago: the rest": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			at := time.Now().Add(-2 * time.Hour).Truncate(time.Hour)
			w.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
			if n == 1 {
				half(w, "", b)
			}
			if r.Header.Get("Range") == "" || r.Header.Get("If-Range") == "" {
				t.Errorf("the rest is asked for with %v", r.Header)
			}
			http.ServeContent(w, r, "x", at, bytes.NewReader(b))
		}, tries: []try{{text: "the connection broke after"}, {}}, want: b},
		"another file meanwhile": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			whole(w, r, "2", other)
		}, tries: []try{{text: "broke"}, {text: "changed while it was fetched", changed: true}, {}}, want: other},
		"another file, If-Range ignored": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			r.Header.Del("If-Range")
			whole(w, r, "2", other)
		}, tries: []try{{text: "broke"}, {text: "changed while it was fetched", changed: true}, {}}, want: other},
		"another part": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			if n == 2 {
				r.Header.Set("Range", "bytes=5-")
			}
			whole(w, r, "1", b)
		}, tries: []try{{text: "broke"}, {text: "with another part", changed: true}, {}}, want: b},
		"shorter meanwhile": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			r.Header.Del("If-Range")
			whole(w, r, "1", b[:100])
		}, tries: []try{{text: "broke"}, {text: "shorter", changed: true}, {}}, want: b[:100]},
		"ranges not known": {serve: func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			w.Header().Set("ETag", `"1"`)
			_, _ = w.Write(b)
		}, tries: []try{{text: "broke"}, {}}, want: b},
		"part unasked for": {serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=5-")
			whole(w, r, "1", b)
		}, tries: plain("206 Partial Content")},
		"more than it has": {serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				half(w, `"1"`, b)
			}
			if n == 2 {
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", len(b)/3, len(b)-1, len(b)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(append(b[len(b)/3:], "and more"...)) // chunked
				return
			}
			whole(w, r, "1", b)
		}, tries: []try{{text: "broke"}, {text: "more than the", changed: true}, {}}, want: b},
		"5 GiB said": {room: 1 << 30, serve: func(_ int, w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\nx")
		}, tries: []try{{text: "no room"}}},
		"5 GiB lied": {serve: func(_ int, w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\nx")
		}, tries: []try{{text: "broke after 1 bytes"}}, want: []byte("x")},
		"size nonsense": {serve: func(_ int, w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx")
		}, tries: []try{{text: "Content-Length"}}},
		"no end":          {serve: func(_ int, w http.ResponseWriter, _ *http.Request) { raw(w, "HTTP/1.1 200 OK\r\n\r\nall of it") }, tries: plain("does not say how long")},
		"no end, checked": {checked: true, serve: func(_ int, w http.ResponseWriter, _ *http.Request) { raw(w, "HTTP/1.1 200 OK\r\n\r\nall of it") }, tries: []try{{}}, want: []byte("all of it")},
		"chunked, cut": {serve: func(_ int, w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n")
		}, tries: []try{{text: "broke"}}, want: []byte("abcde")},
		"empty":   {serve: func(_ int, _ http.ResponseWriter, _ *http.Request) {}, tries: plain("empty")},
		"404":     {serve: func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, tries: plain("404 Not Found (check the URL)")},
		"403":     {serve: func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, tries: plain("upload it")},
		"503":     {serve: func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, tries: []try{{text: "503"}}},
		"429":     {serve: func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, tries: []try{{text: "429"}}},
		"no http": {serve: func(_ int, w http.ResponseWriter, _ *http.Request) { raw(w, "SSH-2.0-OpenSSH\r\n") }, tries: []try{{text: "malformed"}}},
		"to file": {serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/shadow", http.StatusFound)
		}, tries: plain("redirects to file:, which is not followed")},
		"to gopher": {serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "gopher://x/1", http.StatusFound)
		}, tries: plain("redirects to gopher:")},
		"round": {serve: func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, tries: plain("10 redirects do not end")},
		"password": {serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://u:p@localhost/", http.StatusFound)
		}, tries: plain("a URL with a password")},
		"packed on the way": {serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			whole(w, r, "1", b)
		}, tries: plain("packs the file as it sends it")},
		"gz that is called packed": {path: "/x.gz", serve: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "x-gzip")
			_, _ = w.Write(b)
		}, tries: []try{{}}, want: b},
		"headers without end": {serve: func(_ int, w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
		}, tries: []try{{text: "exceeded"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "identity" || r.UserAgent() != "test" {
					t.Errorf("asked with %v", r.Header)
				}
				tc.serve(int(n.Add(1)), w, r)
			}))
			defer srv.Close()
			if tc.path == "" {
				tc.path = "/x"
			}
			c := newClient(t, fetch.Options{Agent: "test"})
			f := &memFile{room: tc.room}
			for i, want := range tc.tries {
				last := int64(-1)
				err := c.Get(t.Context(), fetch.Source{URL: srv.URL + tc.path, Checked: tc.checked}, f, func(done, _ int64) { last = done })
				var fe *fetch.Error
				switch {
				case want.text == "" && err != nil, want.text != "" && (err == nil || !strings.Contains(err.Error(), want.text)):
					t.Fatalf("try %d: %v, want %q", i, err, want.text)
				case errors.As(err, &fe) && (fe.Final != want.final || fe.Changed != want.changed):
					t.Errorf("try %d: %+v", i, fe)
				case err != nil && strings.Contains(err.Error(), "s3cret"):
					t.Errorf("try %d tells the query: %v", i, err)
				case err == nil && i == 0 && last != f.Size():
					t.Errorf("try %d: progress ends at %d of %d", i, last, f.Size())
				}
			}
			if !bytes.Equal(f.Bytes(), tc.want) {
				t.Errorf("got %d bytes, want %d", f.Len(), len(tc.want))
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "99999999999999999999": 0, "-4": 0, "soon": 0, "86400": 5 * time.Minute} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		err := newClient(t, fetch.Options{}).Get(t.Context(), fetch.Source{URL: srv.URL}, &memFile{}, func(_, _ int64) {})
		var fe *fetch.Error
		if !errors.As(err, &fe) || fe.After != want {
			t.Errorf("%s: %+v", header, err)
		}
		srv.Close()
	}
}

// A server that sends nothing more, or next to nothing, does not hold us for ever.
func TestStall(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write([]byte("a start"))
		w.(http.Flusher).Flush()
		<-release
	}))
	defer srv.Close()
	defer close(release)
	f := &memFile{}
	err := newClient(t, fetch.Options{Stall: 50 * time.Millisecond}).Get(t.Context(), fetch.Source{URL: srv.URL}, f, func(_, _ int64) {})
	var fe *fetch.Error
	if !errors.As(err, &fe) || fe.Final || !strings.Contains(err.Error(), "less than 64 KiB came within 50ms") || f.String() != "a start" {
		t.Errorf("%v, %q", err, f.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = newClient(t, fetch.Options{}).Get(ctx, fetch.Source{URL: srv.URL}, f, func(_, _ int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	b := content()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { whole(w, r, "1", b) }))
	defer plain.Close()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain.URL, http.StatusFound)
			return
		}
		whole(w, r, "1", b)
	}))
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	defer srv.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	for name, tc := range map[string]struct {
		options fetch.Options
		src     fetch.Source
		text    string
	}{
		"unknown":             {text: "certificate is of an authority that is not known here"},
		"its own CA":          {src: fetch.Source{CA: ca}},
		"the appliance's CA":  {options: fetch.Options{CA: []byte(ca)}},
		"no CA":               {src: fetch.Source{CA: "nonsense"}, text: "no PEM"},
		"down to http":        {src: fetch.Source{CA: ca, URL: "/down"}, text: "from https to http"},
		"down, with checksum": {src: fetch.Source{CA: ca, URL: "/down", Checked: true}},
	} {
		f := &memFile{}
		tc.src.URL = srv.URL + tc.src.URL
		err := newClient(t, tc.options).Get(t.Context(), tc.src, f, func(_, _ int64) {})
		var fe *fetch.Error
		if (tc.text == "") != (err == nil) || (err != nil && (!strings.Contains(err.Error(), tc.text) || !errors.As(err, &fe) || !fe.Final)) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !bytes.Equal(f.Bytes(), b) {
			t.Errorf("%s: %d bytes", name, f.Len())
		}
	}
	if _, err := fetch.New(fetch.Options{CA: []byte("nonsense")}); err == nil {
		t.Error("nonsense is a CA")
	}
}

// TestStrangers: who may only ask for a list does not read by us what only this
// machine sees.
func TestStrangers(t *testing.T) {
	t.Parallel()
	here := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer here.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(here.URL, "http://"), ":")
	for _, to := range []string{here.URL + "/x", "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://[::1]/", "http://169.254.169.254/latest/", "http://[fe80::1]/", "http://0.0.0.0:" + port} {
		_, err := newClient(t, fetch.Options{}).Small(t.Context(), fetch.Source{URL: to, Strangers: true}, 100)
		if err == nil || !strings.Contains(err.Error(), "of this machine or link") {
			t.Errorf("%s: %v", to, err)
		}
		if strings.Contains(to, "localhost") {
			continue // where a proxy finds a name is the proxy's to say
		}
		proxied := newClient(t, fetch.Options{Proxy: func(*url.URL) (*url.URL, error) { return url.Parse(here.URL) }})
		if _, err := proxied.Small(t.Context(), fetch.Source{URL: to, Strangers: true}, 100); err == nil || !strings.Contains(err.Error(), "of this machine or link") {
			t.Errorf("%s by a proxy: %v", to, err)
		}
	}
}

// TestRedirectedHere: a server elsewhere does not lead to what only this machine sees.
func TestRedirectedHere(t *testing.T) {
	t.Parallel()
	here := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer here.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(here.URL, "http://"), ":")
	for _, to := range []string{here.URL + "/x", "http://localhost:" + port + "/x", "http://[::ffff:127.0.0.1]:" + port, "http://[::1]/", "http://169.254.169.254/latest/", "http://[fe80::1]/", "http://0.0.0.0:" + port} {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to, http.StatusFound)
		}))
		u, err := url.Parse(elsewhere.URL)
		if err != nil {
			t.Fatal(err)
		}
		// the proxy makes it a server elsewhere
		c := newClient(t, fetch.Options{Proxy: func(at *url.URL) (*url.URL, error) {
			if at.Host == "images.example" {
				return u, nil
			}
			return nil, nil
		}})
		err = c.Get(t.Context(), fetch.Source{URL: "http://images.example/x", Checked: true}, &memFile{}, func(_, _ int64) {})
		var fe *fetch.Error
		if !errors.As(err, &fe) || !fe.Final || !strings.Contains(fe.Text, "redirects to an address of this machine") {
			t.Errorf("%s: %v", to, err)
		}
		elsewhere.Close()
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	b := content()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "images.example" {
			t.Errorf("asked for %s", r.URL)
		}
		if r.Header.Get("Proxy-Authorization") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		whole(w, r, "1", b)
	}))
	defer proxy.Close()
	for _, user := range []*url.Userinfo{nil, url.UserPassword("u", "s3cret")} {
		u, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = user
		f := &memFile{}
		err = newClient(t, fetch.Options{Proxy: func(*url.URL) (*url.URL, error) { return u, nil }}).Get(t.Context(), fetch.Source{URL: "http://images.example/x"}, f, func(_, _ int64) {})
		if user == nil && (err == nil || !strings.Contains(err.Error(), "images.proxy")) {
			t.Errorf("without a password: %v", err)
		}
		if user != nil && (err != nil || !bytes.Equal(f.Bytes(), b)) {
			t.Errorf("with a password: %v", err)
		}
	}
	down := &url.URL{Scheme: "http", User: url.UserPassword("u", "s3cret"), Host: "127.0.0.1:1"}
	err := newClient(t, fetch.Options{Proxy: func(*url.URL) (*url.URL, error) { return down, nil }}).Get(t.Context(), fetch.Source{URL: "http://images.example/x?key=s3cret"}, &memFile{}, func(_, _ int64) {})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a proxy that is down: %v", err)
	}
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"file:///etc/passwd", "ftp://x/y", "http://u:s3cret@localhost/", "", "x", "http://nobody.invalid/x"} {
		err := newClient(t, fetch.Options{}).Get(t.Context(), fetch.Source{URL: u}, &memFile{}, func(_, _ int64) {})
		var fe *fetch.Error
		if !errors.As(err, &fe) || (!fe.Final && !strings.Contains(err.Error(), "nobody.invalid")) {
			t.Errorf("%q: %v", u, err)
		}
	}
}

func TestSmall(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100))
	}))
	defer srv.Close()
	c := newClient(t, fetch.Options{})
	if b, err := c.Small(t.Context(), fetch.Source{URL: srv.URL}, 100); err != nil || len(b) != 100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := c.Small(t.Context(), fetch.Source{URL: srv.URL}, 99); err == nil {
		t.Error("more than the limit")
	}
	if _, err := c.Small(t.Context(), fetch.Source{URL: srv.URL + "/gone"}, 99); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

func TestFindSum(t *testing.T) {
	t.Parallel()
	a, b, c := strings.Repeat("a", 64), strings.Repeat("B", 64), strings.Repeat("c", 128)
	const file = "https://images.example/12/debian.qcow2?x=1"
	for name, tc := range map[string]struct{ list, want, wrong string }{
		"gnu":          {a + "  other\n" + b + "  debian.qcow2\n", "sha256:" + strings.ToLower(b), ""},
		"binary, path": {a + " *./debian.qcow2\r\n", "sha256:" + a, ""},
		"sha512":       {c + "  debian.qcow2", "sha512:" + c, ""},
		"both":         {a + "  debian.qcow2\n" + c + "  debian.qcow2", "sha512:" + c, ""},
		"bsd":          {"SHA256 (debian.qcow2) = " + a + "\n", "sha256:" + a, ""},
		"signed":       {"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + a + "  debian.qcow2\n-----BEGIN PGP SIGNATURE-----\nxx\n", "sha256:" + a, ""},
		"alone":        {a + "\n", "sha256:" + a, ""},
		"none":         {a + "  other\n", "", `no sha256, sha512 or md5 of "debian.qcow2" (1 of other files)`},
		"two":          {a + "  debian.qcow2\n" + b + "  debian.qcow2\n", "", "has two"},
		"md5":          {strings.Repeat("d", 32) + "  debian.qcow2", "md5:" + strings.Repeat("d", 32), ""},
		"bsd, md5":     {"MD5 (debian.qcow2) = " + strings.Repeat("D", 32), "md5:" + strings.Repeat("d", 32), ""},
		"md5 is last":  {strings.Repeat("d", 32) + "  debian.qcow2\n" + a + "  debian.qcow2", "sha256:" + a, ""},
		"sha1":         {strings.Repeat("d", 40) + "  debian.qcow2", "", "no sha256"},
		"html":         {"<html><body>not found</body></html>", "", "no sha256"},
		"empty":        {"", "", "no sha256"},
	} {
		got, err := fetch.FindSum([]byte(tc.list), file)
		if got != tc.want || (tc.wrong == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func FuzzFindSum(f *testing.F) {
	f.Add("SHA256 (x) = "+strings.Repeat("a", 64), "http://h/x")
	f.Add(strings.Repeat("a", 64)+"  x\n", "http://h/x")
	f.Fuzz(func(t *testing.T, list, u string) {
		sum, err := fetch.FindSum([]byte(list), u)
		if err == nil && !strings.Contains(strings.ToLower(list), strings.SplitN(sum, ":", 2)[1]) {
			t.Errorf("%q is not in %q", sum, list)
		}
	})
}
