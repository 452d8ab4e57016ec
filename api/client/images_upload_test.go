package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api/client"
)

// midway calls a function once, when a part of the text was read.
type midway struct {
	io.Reader
	then func()
}

func (m *midway) Read(p []byte) (int, error) {
	if m.then != nil && len(p) > 0 {
		n, err := m.Reader.Read(p[:1])
		m.then()
		m.then = nil
		return n, err
	}
	return m.Reader.Read(p)
}

// What others do to the record while a file travels does not cost the file.
func TestUploadAndOthers(t *testing.T) {
	t.Parallel()
	d := start(t)
	ctx := t.Context()
	upload := func(text string, then func()) {
		t.Helper()
		i, err := d.c.UploadImage(ctx, "x", &midway{strings.NewReader(text), then}, client.Upload{Format: "raw", OS: "debian"})
		d.must(err)
		if i.Status.Source.Bytes != int64(len(text)) || i.Spec.OS != "debian" {
			t.Errorf("%s: %+v", text, i)
		}
	}
	upload("created meanwhile", func() {
		d.apply("kind: Image\nmetadata: {name: x, labels: {a: b}}\nspec: {url: 'http://nobody.invalid/x', description: kept}\n")
	})
	upload("changed meanwhile, once more", func() {
		_, err := d.c.Images.Patch(ctx, "x", 0, map[string]any{"metadata": map[string]any{"labels": map[string]any{"c": "d"}}})
		d.must(err)
	})
	i, err := d.c.Images.Get(ctx, "x")
	d.must(err)
	if i.Spec.URL != "" || i.Spec.Description != "kept" || i.Meta.Labels["a"] != "b" || i.Meta.Labels["c"] != "d" {
		t.Errorf("the others' changes: %+v", i)
	}
	upload("deleted meanwhile", func() { d.must(d.c.Images.Delete(ctx, "x", 0)) })
}

// A revision that is not the record's is known before a byte of the file is sent.
func TestUploadIfMatch(t *testing.T) {
	t.Parallel()
	d := start(t)
	_, err := d.c.UploadImage(t.Context(), "x", strings.NewReader("one"), client.Upload{Format: "raw"})
	d.must(err)
	for name, status := range map[string]int{"x": http.StatusPreconditionFailed, "nobody": http.StatusNotFound} {
		hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
		}, ExpectContinueTimeout: 1 << 40}}
		body := &midway{strings.NewReader("two"), func() { t.Errorf("%s: the file travels", name) }}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://x/api/v1/images/"+name+"/blob?format=raw", body)
		d.must(err)
		r.Header.Set("Expect", "100-continue")
		r.Header.Set("If-Match", `"99999"`)
		resp, err := hc.Do(r)
		d.must(err)
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}
