package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/catalogue"
	"github.com/rackstrap/rackstrap/store/image/fetch"
	"github.com/rackstrap/rackstrap/store/logs"
	"github.com/rackstrap/rackstrap/workflow"
)

// rig is the API over the real store and engine, as callers on the network see it.
type rig struct {
	t    testing.TB
	db   *store.DB
	kv   *bolt.KV
	e    *workflow.Engine
	logs *logs.Logs
	deps rest.Deps
	url  string // of callers with tokens
	sock string // of root on the unix socket

	mu     sync.Mutex
	passed time.Duration // on the clock of store, engine and API
	noted  []workflow.Event
}

func (g *rig) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Add(g.passed)
}

func (g *rig) pass(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed += d
}

func (g *rig) note(ev workflow.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noted = append(g.noted, ev)
}

func resolve(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
	return a.With, nil
}

func (g *rig) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigWith(t, func(*rig, *workflow.Config) {})
}

// newRigWith changes the engine's configuration.
func newRigWith(t testing.TB, with func(*rig, *workflow.Config)) *rig {
	t.Helper()
	g := &rig{t: t}
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
	g.must(err)
	g.kv = kv
	t.Cleanup(func() { _ = kv.Close() })
	g.db, err = store.Open(t.Context(), kv, filepath.Join(dir, "seal.key"), store.Options{Now: g.now, Leases: kv.Leases()})
	g.must(err)
	g.logs = logs.Open(filepath.Join(dir, "logs"))
	log := slog.New(slog.DiscardHandler)
	c := workflow.Config{
		Store: g.db, Templates: g.db.TemplateByName, HardwareByName: g.db.HardwareByName,
		Resolve: resolve,
		Logs:    g.logs, TokenKey: make([]byte, 32), Now: g.now, Log: log, Note: func(workflow.Event) {},
	}
	with(g, &c)
	e := workflow.NewEngine(c)
	g.e = e
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- e.Run(ctx) }()
	go func() { done <- g.db.Run(ctx) }()
	<-e.Ready()
	files, err := image.Open(filepath.Join(dir, "images"), image.Options{Reserve: -1})
	g.must(err)
	f, err := fetch.New(fetch.Options{})
	g.must(err)
	images := catalogue.New(catalogue.Config{Records: g.db, Files: files, Fetch: f, Now: g.now, Log: log})
	g.deps = rest.Deps{
		Records: g.db, Engine: e, Logs: g.logs, Images: images, Tokens: g.db, Audit: g.db.AppendEvent, Note: g.note,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
		Doctor:  func(context.Context) ([]api.DoctorCheck, error) { return []api.DoctorCheck{}, nil },
		Version: "test", Now: g.now, Log: log,
		Dry: func(ctx context.Context) (rest.Records, rest.Engine, error) {
			db := g.db.Dry()
			dry, err := e.Dry(ctx, db, resolve)
			return db, dry, err
		},
	}
	a := rest.New(g.deps)
	remote, socket := httptest.NewServer(a.Remote()), httptest.NewServer(a)
	g.url, g.sock = remote.URL, socket.URL
	t.Cleanup(func() { // before the store is closed
		cancel()
		remote.CloseClientConnections()
		remote.Close()
		socket.Close()
		<-done
		<-done
	})
	return g
}

// ask makes a request and returns its answer's status and body.
func (g *rig) ask(base, method, path, token, body string) (int, string) {
	g.t.Helper()
	resp := g.send(base, method, path, token, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	g.must(err)
	return resp.StatusCode, string(text)
}

func (g *rig) send(base, method, path, token, body string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, base+path, strings.NewReader(body))
	g.must(err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if path == api.Base+"/events?" {
		r.Header.Set("Accept", "text/event-stream")
	}
	resp, err := http.DefaultClient.Do(r)
	g.must(err)
	return resp
}

// token makes one and returns its secret.
func (g *rig) token(name string, spec hardware.TokenSpec) string {
	g.t.Helper()
	secret, err := g.db.CreateToken(g.t.Context(), &hardware.Token{Meta: hardware.Meta{Name: name}, Spec: spec})
	g.must(err)
	return secret
}

// machine adds a record, available where it says so.
func (g *rig) machine(n byte, name, labels string) {
	g.t.Helper()
	h := &hardware.Hardware{Meta: hardware.Meta{Name: name, Labels: map[string]string{}}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, n}}}}}
	for _, l := range strings.Split(labels, ",") {
		k, v, _ := strings.Cut(l, "=")
		h.Meta.Labels[k] = v
	}
	g.must(g.db.CreateHardware(g.t.Context(), h))
}

// claim gives a machine to an owner.
func (g *rig) claim(id, owner, machine string) {
	g.t.Helper()
	c := &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: owner, Hardware: machine}}
	_, _, err := g.db.Claim(g.t.Context(), c, hardware.Selector{})
	g.must(err)
}
