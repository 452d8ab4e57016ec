package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/workflow"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// raw is one request as any client may send it.
func (d *daemon) raw(method, path, contentType, body string, header ...string) (*http.Response, string) {
	d.t.Helper()
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	}}}
	r, err := http.NewRequestWithContext(d.t.Context(), method, "http://x"+path, strings.NewReader(body))
	d.must(err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := hc.Do(r)
	d.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	d.must(err)
	return resp, string(text)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	h, err := d.c.Hardware.Get(t.Context(), "m1")
	d.must(err)
	subnet := `{"kind":"Subnet","metadata":{"name":"lan"},"spec":{"prefix":"10.0.0.0/24","mtu":9000}}`
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'n'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for _, tc := range []struct {
		name, method, path, ct, body string
		header                       []string
		status                       int
		want                         string
	}{
		{"no route", "GET", "/api/v1/hardwares", "", "", nil, 404, `did you mean /api/v1/hardware?`},
		{"no method", "POST", "/api/v1/hardware/m1", "", "", nil, 405, `GET or PUT or PATCH or DELETE`},
		{"workflows are not replaced", "PUT", "/api/v1/workflows/w", "", "{}", nil, 405, `GET or DELETE`},
		{"unknown parameter", "GET", "/api/v1/events?hardwear=m1", "", "", nil, 400, `hardwear`},
		{"form", "POST", "/api/v1/apply", "application/x-www-form-urlencoded", "x", nil, 415, `application/yaml`},
		{"no document", "POST", "/api/v1/apply", "application/yaml", "# nothing\n---\n", nil, 400, `no document`},
		{"two documents", "POST", "/api/v1/subnets", "application/yaml", "a: b\n---\nc: d\n", nil, 400, `2 documents`},
		{"broken yaml", "POST", "/api/v1/apply", "application/yaml", "a: [b\n", nil, 400, `line 1`},
		{"broken json", "POST", "/api/v1/apply", "application/json", "{\"a\":\n}", nil, 400, `line 2`},
		{"duplicate key", "POST", "/api/v1/apply", "application/json", `{"kind":"Subnet","kind":"Image"}`, nil, 400, `there twice`},
		{"alias bomb", "POST", "/api/v1/apply", "application/yaml", bomb, nil, 400, `aliases followed`},
		{"deep yaml", "POST", "/api/v1/apply", "application/yaml", strings.Repeat("[", 100_000), nil, 400, `depth`},
		{"deep json", "POST", "/api/v1/apply", "application/json", strings.Repeat("[", 100_000), nil, 400, `nested more than 32 deep`},
		{"large", "POST", "/api/v1/apply", "application/json", strings.Repeat(" ", 4<<20+1), nil, 413, `4194304`},
		{"unknown field", "POST", "/api/v1/subnets", "", `{"spec":{"gatway":"10.0.0.1"}}`, nil, 422, `did you mean gateway?`},
		{"wrong kind", "POST", "/api/v1/subnets", "", `{"kind":"Hardware"}`, nil, 422, `wanted Subnet`},
		{"other name", "PUT", "/api/v1/subnets/lan2", "", subnet, nil, 422, `differs from`},
		{"put makes nothing", "PUT", "/api/v1/subnets/lan9", "", `{"spec":{"prefix":"10.9.0.0/24"}}`, nil, 404, `rackstrap subnet list`},
		{"if-match of another", "PUT", "/api/v1/subnets/lan", "", subnet, []string{"If-Match", `"1"`}, 412, `"revision":`},
		{"if-match nonsense", "PUT", "/api/v1/subnets/lan", "", subnet, []string{"If-Match", `"x"`}, 400, `no revision`},
		{"put", "PUT", "/api/v1/subnets/lan", "application/json; charset=utf-8", subnet, nil, 200, `"mtu":9000`},
		{"if-match of a deleted", "DELETE", "/api/v1/hardware/m1", "", "", []string{"If-Match", `"1"`}, 412, `revision`},
		{"etag", "GET", "/api/v1/hardware/m1", "", "", nil, 200, `{"apiVersion":"rackstrap/v1","kind":"Hardware","metadata":{"name":"m1"`},
		{"hold by default", "POST", "/api/v1/hardware/m1/hold", "", "", nil, 200, `"hold":true`},
		{"hold typo", "POST", "/api/v1/hardware/m1/hold", "", `{"held":false}`, nil, 422, `did you mean hold?`},
		{"follow without a stream", "GET", "/api/v1/events?follow=true", "", "", nil, 400, `text/event-stream`},
		{"bad cursor", "GET", "/api/v1/events", "", "", []string{"Accept", "text/event-stream", "Last-Event-ID", "x"}, 400, `no cursor`},
		{"stream backwards", "GET", "/api/v1/events?before=01J00000000000000000000000", "", "", []string{"Accept", "text/event-stream"}, 400, `lists only`},
		{"stored stream", "GET", "/api/v1/events?follow=false&hardware=m1", "", "", []string{"Accept", "text/event-stream"}, 200, "event: event\ndata: {"},
		{"bad image name", "PUT", "/api/v1/images/Bad_Name/blob", "", "data", nil, 422, `metadata.name`},
		{"bad checksum", "PUT", "/api/v1/images/x/blob?checksum=md5:1", "", "data", nil, 422, `is no checksum`},
		{"other bytes", "PUT", "/api/v1/images/x/blob?checksum=sha256:" + strings.Repeat("0", 64), "", "data", nil, 422, `checksum differs`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, text := d.raw(tc.method, tc.path, tc.ct, tc.body, tc.header...)
			if resp.StatusCode != tc.status || !strings.Contains(text, tc.want) {
				t.Fatalf("got %d %.600s, want %d …%s…", resp.StatusCode, text, tc.status, tc.want)
			}
			if resp.StatusCode < 400 {
				return
			}
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != tc.status || p.Title == "" || p.Type == "" || resp.Header.Get("Content-Type") != api.ProblemType {
				t.Errorf("no problem: %s %s", resp.Header.Get("Content-Type"), text)
			}
		})
	}
	resp, _ := d.raw("GET", "/api/v1/hardware/m1", "", "")
	if got, want := resp.Header.Get("ETag"), fmt.Sprintf(`"%d"`, h.Meta.Revision); got != want {
		t.Errorf("ETag %s, want %s", got, want)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if strings.Contains(d.log.String(), "level=ERROR") || strings.Contains(d.log.String(), "tops3cret") {
		t.Errorf("log: %s", d.log.String())
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	d := start(t)
	const file, sum = "an operating system", "sha256:3bbea58e2a50ea7b6c3ce5ba13ae31f1ee2ea8d3c2bc2dbd4a04e2ac4d3e9a54"
	_, err := d.c.UploadImage(t.Context(), "debian", strings.NewReader(file), client.Upload{Checksum: sum})
	wantProblem(t, err, 422, api.CodeInvalid, "checksum differs")
	_, err = d.c.UploadImage(t.Context(), "debian", strings.NewReader(file), client.Upload{})
	wantProblem(t, err, 422, api.CodeInvalid, "not a usable disk image: it is a text")
	if all, err := d.c.Images.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a refused file is in the catalogue: %v, %v", all, err)
	}
	var sent int64
	img, err := d.c.UploadImage(t.Context(), "debian", strings.NewReader(file), client.Upload{
		Size: int64(len(file)), Format: "raw", OS: "debian", OSVersion: "12", KubernetesVersion: "v1.31.2", Progress: func(n int64) { sent = n },
	})
	d.must(err)
	r := img.Status.Renditions
	if img.Spec.Bytes != int64(len(file)) || len(img.Spec.Blob) != 64 || img.Spec.Format != "raw" || sent != img.Spec.Bytes ||
		img.Status.State != workflow.ImageReady || len(r) != 1 || r[0].Digest != img.Spec.Blob || img.Status.DiskBytes != sent {
		t.Errorf("got %+v, %d sent", img, sent)
	}
	again, err := d.c.UploadImage(t.Context(), "debian", strings.NewReader(file+"2"), client.Upload{})
	d.must(err)
	if again.Spec.Blob == img.Spec.Blob || again.Spec.Format != "raw" || again.Spec.OS != "debian" || again.Meta.UID != img.Meta.UID || again.Status.Source.Digest != again.Spec.Blob {
		t.Errorf("got %+v", again)
	}
	full := startWith(t, 10)
	_, err = full.c.UploadImage(t.Context(), "debian", strings.NewReader(file), client.Upload{Format: "raw"})
	wantProblem(t, err, http.StatusInsufficientStorage, api.CodeStorageFull, "image quota is used up")
}

// Every route answers with what it says, to a path that exists and one that does not.
func TestRoutes(t *testing.T) {
	t.Parallel()
	d := start(t)
	name := regexp.MustCompile(`\{[a-z]+\}`)
	seen := map[string]bool{}
	for _, r := range rest.Routes() {
		if key := r.Method + " " + r.Path; seen[key] || r.Does == "" || r.Role == "" && r.Path != "/session" {
			t.Errorf("%s: twice, or without a sentence or a role", key)
		}
		seen[r.Method+" "+r.Path] = true
		resp, text := d.raw(r.Method, api.Base+name.ReplaceAllString(r.Path, "nobody"), "", "")
		if (resp.StatusCode >= 500 && !strings.Contains(text, string(api.CodeUnavailable))) || strings.Contains(text, string(api.CodeNoRoute)) || strings.Contains(text, string(api.CodeMethod)) {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, resp.StatusCode, text)
		}
	}
}
