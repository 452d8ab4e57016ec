package client_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api/client"
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

// daemon is REST over the real store and engine, on a unix socket.
type daemon struct {
	t      testing.TB
	db     *store.DB
	e      *workflow.Engine
	logs   *logs.Logs
	socket string
	c      *client.Client
	files  *image.Store
	images *catalogue.Manager
	stop   func()

	mu  sync.Mutex
	log strings.Builder
}

// dry makes the store and the engine of one dry run.
func (d *daemon) dry(ctx context.Context) (rest.Records, rest.Engine, error) {
	db := d.db.Dry()
	e, err := d.e.Dry(ctx, db, resolve)
	return db, e, err
}

func resolve(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
	return a.With, nil
}

func (d *daemon) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(p)
}

func start(t testing.TB) *daemon { return startWith(t, 0) }

// startWith bounds the images by quota bytes; 0 is no bound.
func startWith(t testing.TB, quota int64) *daemon {
	t.Helper()
	d := &daemon{t: t}
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
	d.must(err)
	t.Cleanup(func() { _ = kv.Close() })
	d.db, err = store.Open(t.Context(), kv, filepath.Join(dir, "seal.key"), store.Options{})
	d.must(err)
	log := slog.New(slog.NewTextHandler(d, nil))
	d.logs = logs.Open(filepath.Join(dir, "logs"))
	d.e = workflow.NewEngine(workflow.Config{
		Store: d.db, Templates: d.db.TemplateByName, HardwareByName: d.db.HardwareByName,
		Resolve: resolve,
		Logs:    d.logs, TokenKey: make([]byte, 32), Now: time.Now, Log: log, Note: func(workflow.Event) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 3)
	go func() { done <- d.e.Run(ctx) }()
	go func() { done <- d.db.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; <-done; <-done })
	<-d.e.Ready()
	d.files, err = image.Open(filepath.Join(dir, "images"), image.Options{Quota: quota, Reserve: -1})
	d.must(err)
	f, err := fetch.New(fetch.Options{})
	d.must(err)
	d.images = catalogue.New(catalogue.Config{Records: d.db, Files: d.files, Fetch: f, Now: time.Now, Log: log})
	go func() { done <- d.images.Run(ctx) }()
	// not t.TempDir: a socket's path has at most 107 bytes
	sdir, err := os.MkdirTemp("", "rs")
	d.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(sdir) })
	d.socket = filepath.Join(sdir, "s")
	h := rest.New(rest.Deps{Records: d.db, Engine: d.e, Logs: d.logs, Dry: d.dry, Images: d.images, Version: "test", Now: time.Now, Log: log})
	d.listen(h)
	d.c = client.New(client.Options{Socket: d.socket})
	t.Cleanup(d.c.Close)
	return d
}

// listen serves h until d.stop.
func (d *daemon) listen(h http.Handler) {
	d.t.Helper()
	l, err := net.Listen("unix", d.socket)
	d.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	srv := &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	d.stop = sync.OnceFunc(func() { cancel(); _ = srv.Close(); <-done })
	d.t.Cleanup(d.stop)
}

func (d *daemon) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

const rack = `
apiVersion: rackstrap/v1
kind: Hardware
metadata: {name: m1, labels: {rack: r7}}
spec:
  interfaces:
    - mac: 52:54:00:00:00:01
      addresses: [10.0.0.5/24]
  userData: |
    #cloud-config
    password: tops3cret
---
kind: Subnet
metadata: {name: lan}
spec: {prefix: 10.0.0.0/24, gateway: 10.0.0.1, dns: [10.0.0.1], leaseTime: 90}
---
kind: Template
metadata: {name: install}
spec:
  parameters:
    - name: image
    - {name: pw, type: secret, default: hunter2}
  actions:
    - {name: wipe, kind: disk.wipe}
    - name: key
      kind: file.write
      with: {path: /etc/key, content: "k=${pw}", mode: 0600}
    - {name: restart, kind: reboot}
`

func (d *daemon) apply(text string) {
	d.t.Helper()
	_, err := d.c.Apply(d.t.Context(), strings.NewReader(text))
	d.must(err)
}

// worker boots the machine and returns its session.
func (d *daemon) worker(name string) *workflow.Session {
	d.t.Helper()
	ctx := d.t.Context()
	h, err := d.db.HardwareByName(ctx, name)
	d.must(err)
	addr := netip.MustParseAddr("10.0.0.5")
	b, err := d.e.FirstPacket(ctx, workflow.FirstPacket{Hardware: h.Meta.UID, MAC: h.Spec.Interfaces[0].MAC, XID: 7, Firmware: hardware.FirmwareUEFI})
	d.must(err)
	d.must(d.e.Acked(ctx, h.Meta.UID, b.ID, addr, netip.MustParseAddr("10.0.0.1"), false))
	g, err := d.e.Script(ctx, h.Meta.UID, addr)
	d.must(err)
	adm, err := d.e.Redeem(ctx, g.Token, make([]byte, 32), addr)
	d.must(err)
	s, err := d.e.Attach(ctx, adm, nil)
	d.must(err)
	return s
}

func (d *daemon) assigned(s *workflow.Session) workflow.Assignment {
	d.t.Helper()
	for _, c := range s.Take() {
		if c.Assign != nil {
			return c.Assign.Assignment
		}
	}
	d.t.Fatal("no action was assigned")
	return workflow.Assignment{}
}

func (d *daemon) report(s *workflow.Session, a workflow.Assignment, o workflow.Outcome) {
	d.t.Helper()
	d.must(s.Report(d.t.Context(), workflow.Report{Assignment: a, Outcome: o}))
}
