package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rackstrap/rackstrap/api"
)

// endless is a body of one repeated text that notes how much of it was taken.
type endless struct {
	text  string
	left  int64
	taken atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && e.left > 0 {
		m := copy(p[n:min(len(p), n+int(min(e.left, int64(len(e.text)))))], e.text)
		n += m
		e.left -= int64(m)
	}
	e.taken.Add(int64(n))
	return n, nil
}

// Bodies of 100 MB are refused after 4 MiB, and nesting without end when it is too
// deep; neither costs memory. It is not parallel: it looks at what all allocate.
func TestHostileBodies(t *testing.T) {
	d := start(t)
	d.apply(rack)
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	}}}
	routes := []struct{ method, path string }{
		{"POST", "/apply"},
		{"POST", "/apply?dryRun=true"},
		{"POST", "/hardware"},
		{"PUT", "/subnets/lan"},
		{"PATCH", "/hardware/m1"},
		{"POST", "/bulk"},
		{"POST", "/hardware/m1/hold"},
		{"POST", "/workflows"},
	}
	for i, tc := range []struct {
		name, ct, text string
		size           int64
		status         int
		want           string
	}{
		{"100 MB of space", "application/json", " \n", 100 << 20, http.StatusRequestEntityTooLarge, "4194304"},
		{"100 MB of text", "application/yaml", "aaaaaaa: b\n", 100 << 20, http.StatusRequestEntityTooLarge, "4194304"},
		{"deep lists", "application/json", "[", 4 << 20, http.StatusBadRequest, "nested more than 32 deep"},
		{"deep maps", "application/json", `{"a":`, 5 << 19, http.StatusBadRequest, "nested more than 32 deep"},
		{"deep yaml", "application/yaml", "[", 4 << 20, http.StatusBadRequest, "lines and values"},
		{"deep yaml, less of it", "application/yaml", "- ", 60_000, http.StatusBadRequest, ""},
	} {
		for j, route := range routes {
			if i > 0 && j%4 > 0 {
				continue // each text at some routes, the first at all
			}
			body := &endless{text: tc.text, left: tc.size}
			r, err := http.NewRequestWithContext(t.Context(), route.method, "http://x"+api.Base+route.path, body)
			d.must(err)
			r.Header.Set("Content-Type", tc.ct)
			r.ContentLength = tc.size
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			resp, err := hc.Do(r)
			if err != nil {
				// the server may hang up while we still send; it must not have taken it all
				if body.taken.Load() == tc.size {
					t.Errorf("%s, %s: %v", tc.name, route.path, err)
				}
				continue
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			runtime.ReadMemStats(&after)
			if resp.StatusCode != tc.status || !strings.Contains(string(text), tc.want) {
				t.Errorf("%s, %s: got %d %.300s, want %d …%s…", tc.name, route.path, resp.StatusCode, text, tc.status, tc.want)
			}
			if body.taken.Load() > 20<<20 {
				t.Errorf("%s, %s: %d bytes were taken", tc.name, route.path, body.taken.Load())
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%s, %s: %d MiB were allocated", tc.name, route.path, n>>20)
			}
		}
	}
}
