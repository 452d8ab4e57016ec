package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
)

// A look that panics is a finding, and the daemon goes on.
func TestDoctorFails(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ill := true
	g.deps.Doctor = func(context.Context) ([]api.DoctorCheck, error) {
		if ill {
			panic("no such interface")
		}
		return []api.DoctorCheck{{Name: "clock", Result: api.CheckOK}}, nil
	}
	srv := httptest.NewServer(rest.New(g.deps).Remote())
	defer srv.Close()
	op := g.token("op", hardware.TokenSpec{Role: hardware.RoleOperator})
	status, text := g.ask(srv.URL, "GET", api.Base+"/doctor", op, "")
	if status != http.StatusOK || !strings.Contains(text, `"name":"doctor","result":"fail"`) || strings.Contains(text, "no such interface") {
		t.Errorf("%d %s", status, text)
	}
	ill = false
	if status, text := g.ask(srv.URL, "GET", api.Base+"/doctor", op, ""); status != http.StatusOK || !strings.Contains(text, `"result":"ok"`) {
		t.Errorf("the next one: %d %s", status, text)
	}
}

// Those who ask at once share one look; who leaves does not end it; the next one is a new one.
func TestDoctor(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var looks atomic.Int32
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	g.deps.Doctor = func(ctx context.Context) ([]api.DoctorCheck, error) {
		looks.Add(1)
		begun <- struct{}{}
		select {
		case <-goOn:
			return []api.DoctorCheck{{Name: "clock", Result: api.CheckWarn, Detail: "late", Fix: "set it"}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	srv := httptest.NewServer(rest.New(g.deps).Remote())
	defer srv.Close()
	g.url = srv.URL
	op, eye := g.token("op", hardware.TokenSpec{Role: hardware.RoleOperator}), g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", g.url+api.Base+"/doctor", nil)
	g.must(err)
	r.Header.Set("Authorization", "Bearer "+op)
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	leave()
	<-left
	var wg sync.WaitGroup
	asked := make(chan struct{}, 5)
	for range 5 {
		wg.Go(func() {
			asked <- struct{}{}
			status, text := g.ask(g.url, "GET", api.Base+"/doctor", op, "")
			if status != http.StatusOK || !strings.Contains(text, `{"name":"clock","result":"warn","detail":"late","fix":"set it"}`) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	for range 5 {
		<-asked
	}
	close(goOn)
	wg.Wait()
	if n := looks.Load(); n > 6 {
		t.Errorf("%d looks", n)
	}
	before := looks.Load()
	if status, _ := g.ask(g.url, "GET", api.Base+"/doctor", op, ""); status != http.StatusOK || looks.Load() != before+1 {
		t.Errorf("the next one: %d, %d looks", status, looks.Load()-before)
	}
	if status, _ := g.ask(g.url, "GET", api.Base+"/doctor", eye, ""); status != http.StatusForbidden {
		t.Errorf("a viewer: %d", status)
	}
}
