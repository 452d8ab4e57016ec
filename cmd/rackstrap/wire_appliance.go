package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/api/workergrpc"
	"github.com/rackstrap/rackstrap/deploy/docs"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/dhcp/ndp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/catalogue"
	"github.com/rackstrap/rackstrap/store/logs"
	"github.com/rackstrap/rackstrap/tftp"
	"github.com/rackstrap/rackstrap/workflow"
)

// appliance is the daemon's parts, wired. It has no logic of its own.
type appliance struct {
	c        config
	log      *slog.Logger
	kv       *bolt.KV
	db       *store.DB
	recorder *store.Recorder
	blobs    *image.Store
	images   *catalogue.Manager
	engine   *workflow.Engine
	logs     *logs.Logs
	resolver resolver
	id       identity
	assets   *ipxe.Assets
	unknown  *dhcp.StrangerRing
	reg      *prometheus.Registry
	meters   *meters
	ready    atomic.Bool
	https    *certKeeper // nil: no HTTPS
	api      *rest.API
	dhcp     *dhcp.Server // nil: it is off
}

func newAppliance(ctx context.Context, c config, log *slog.Logger) (_ *appliance, err error) {
	a := &appliance{c: c, log: log, reg: newRegistry(), assets: ipxe.NewAssets(c.Data), unknown: dhcp.NewStrangerRing()}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	a.meters = newMeters(a.reg)
	if err := sweepCopies(c.Data); err != nil {
		return nil, err
	}
	if a.kv, err = bolt.Open(filepath.Join(c.Data, databaseFile), bolt.Options{Log: log}); err != nil {
		return nil, err
	}
	a.db, err = store.Open(ctx, meteredKV{a.kv, a.meters}, filepath.Join(c.Data, keyFile), store.Options{Leases: a.kv.Leases(), Log: log})
	if err != nil {
		return nil, err
	}
	if a.id, err = loadIdentity(ctx, a.db, time.Now()); err != nil {
		return nil, err
	}
	if c.HTTPS.Listen != "" {
		if a.https, err = newCertKeeper(ctx, c.HTTPS, a.db, time.Now, log); err != nil {
			return nil, err
		}
	}
	if a.blobs, err = image.Open(filepath.Join(c.Data, "images"), image.Options{Quota: c.Images.QuotaGiB << 30, Log: log}); err != nil {
		return nil, err
	}
	if a.images, err = newImages(ctx, c.Images, a.db, a.blobs, log); err != nil {
		return nil, err
	}
	if err := addBuiltins(ctx, a.db); err != nil {
		return nil, err
	}
	a.logs = logs.Open(filepath.Join(c.Data, "logs"))
	a.sweepLogs(ctx)
	a.recorder = store.NewRecorder(a.db, log)
	a.resolver = resolver{image: a.db.ImageByName, seeds: a.seeds()}
	a.engine = workflow.NewEngine(workflow.Config{
		Store: meteredEngineStore{a.db, a.meters}, Templates: a.db.TemplateByName, HardwareByName: a.db.HardwareByName,
		Resolve: a.resolver.resolve, Logs: a.logs, Note: a.recorder.Note, Machines: a.db.View().Hardware, Subnets: a.db.View().Subnets,
		Rules: a.db.View().Rules, Alike: a.db.View().Alike,
		StopWithin: time.Duration(c.Release.StopWithin),
		TokenKey:   a.id.tokenKey, Now: time.Now, Log: log, Power: newPower(a.reg),
	})
	a.meters.watch(a.reg, a.engine.Stats, a.recorder.Dropped)
	return a, nil
}

// close releases the store; it may be called on a half-made appliance.
func (a *appliance) close() {
	if a.kv == nil {
		return
	}
	if err := a.kv.Close(); err != nil {
		a.log.Error("store not closed cleanly", "err", err)
	}
}

func (a *appliance) seeds() *seeds {
	return &seeds{
		key: a.id.tokenKey, now: time.Now, workflow: a.db.Workflow, hardware: a.db.Hardware, subnets: a.db.View().Subnets,
		base: a.httpBase, installation: a.id.installation, sshKeys: a.c.Metadata.SSHKeys,
	}
}

// httpBase is our HTTP listener as a machine's current boot was told.
func (a *appliance) httpBase(ctx context.Context, uid string) (string, error) {
	m, err := a.db.Machine(ctx, uid)
	if err != nil {
		return "", err
	}
	if m.Boot == nil || !m.Boot.Server.IsValid() {
		return "", fmt.Errorf("the machine has no boot that knows our address")
	}
	port, err := listenPort(a.c.HTTP.Listen)
	return "http://" + netip.AddrPortFrom(m.Boot.Server, port).String(), err
}

// run opens the listeners and runs all parts until ctx ends. What is written last
// (notes) stops after those that write it.
func (a *appliance) run(ctx context.Context, ready func()) error {
	// Those for arm64 may be left out of a build; who has such a machine hears of it
	// from validate and explain.
	if err := a.assets.Missing("amd64"); err != nil {
		a.log.Warn("machines cannot netboot", "reason", hardware.ReasonNoBootAssets, "err", err)
	}
	a.sayBootFiles()
	back, stopBack := context.WithCancel(context.WithoutCancel(ctx))
	backDone := make(chan error, 1)
	go func() {
		backDone <- runAll(back, []part{{name: "store", run: a.db.Run}, {name: "event recorder", run: a.recorder.Run}}, func() {})
	}()
	parts, err := a.parts()
	if err == nil {
		parts = append(parts, part{name: "background", run: func(ctx context.Context) error {
			select {
			case err := <-backDone:
				backDone <- err
				return err
			case <-ctx.Done():
				return nil
			}
		}})
		err = runAll(ctx, parts, func() { a.ready.Store(true); ready() })
	}
	a.ready.Store(false)
	stopBack()
	return errors.Join(err, <-backDone)
}

// parts makes everything that listens.
func (a *appliance) parts() ([]part, error) {
	track := newTracker(a.engine, a.db.View(), a.log)
	httpPort, err := listenPort(a.c.HTTP.Listen)
	if err != nil {
		return nil, err
	}
	grpcPort, err := listenPort(a.c.Worker.Listen)
	if err != nil {
		return nil, err
	}
	hb := &httpBoots{
		tracker: track, httpPort: httpPort, grpcPort: grpcPort,
		images: func(digest string) (*os.File, error) { return a.blobs.Open(context.Background(), digest) },
		common: ipxe.ScriptInput{CA: a.id.caSHA256, Consoles: a.c.Worker.Consoles, KernelArgs: a.c.Worker.KernelArgs},
	}
	out := []part{{name: "workflow engine", run: a.engine.Run, ready: a.engine.Ready()}, {name: "images", run: a.images.Run}, {name: "attempt logs", run: a.keepLogs}}
	add := func(p part, err error) error {
		out = append(out, p)
		return err
	}
	err = errors.Join(
		add(a.restPart()), add(a.httpsPart()), add(a.healthPart()), add(a.httpPart(hb)), add(a.workerPart()), add(a.tftpPart(hb)),
	)
	if err == nil && a.c.DHCP.Enabled {
		err = add(a.dhcpPart(track, httpPort))
		if err == nil && a.c.DHCP.AnswerRouterSolicitations {
			err = add(a.ndpPart(track))
		}
	}
	return out, err
}

func (a *appliance) restPart() (part, error) {
	sums, err := builtIns()
	if err != nil {
		return part{}, err
	}
	if err := os.MkdirAll(filepath.Dir(a.c.Socket), 0o750); err != nil {
		return part{}, err
	}
	l, err := listenUnix(a.c.Socket)
	if err != nil {
		return part{}, err
	}
	a.api = rest.New(rest.Deps{
		Records: a.db, Engine: a.engine, Logs: a.logs, Images: a.images, Backups: a, Installation: a.id.installation, Strangers: strangers{a.unknown, a.engine.Strangers, a.db.View()},
		Dry: a.dry, Tokens: a.db, Audit: a.db.AppendEvent, Note: a.recorder.Note,
		Count: a.meters.request, Metrics: promhttp.HandlerFor(a.reg, promhttp.HandlerOpts{}), Fingerprint: a.fingerprint,
		BootFiles: a.bootFiles, BootFileList: a.bootFileList, Revoke: a.revokeLease, Network: a.resolver.static, Sums: a.images.Sum,
		Guide: docs.Troubleshooting, BuiltIn: func(t *workflow.Template) (bool, bool) { return isBuiltIn(sums, t) },
		Doctor: a.examine, Version: version, Now: time.Now, Log: a.log,
	})
	return part{name: "REST", run: func(ctx context.Context) error {
		return serveHTTP(ctx, l, &http.Server{
			Handler: a.api, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
			BaseContext: func(net.Listener) context.Context { return ctx }, // event streams end with us
		})
	}}, nil
}

func (a *appliance) healthPart() (part, error) {
	l, err := net.Listen("tcp", a.c.Health.Listen)
	if err != nil {
		return part{}, err
	}
	srv := &http.Server{Handler: healthHandler(a.reg, a.readiness, a.warnings), ReadHeaderTimeout: 5 * time.Second}
	return part{name: "health", run: func(ctx context.Context) error { return serveHTTP(ctx, l, srv) }}, nil
}

func (a *appliance) readiness() error {
	if !a.ready.Load() {
		return errors.New("not every part serves yet")
	}
	return nil
}

// warnings are what a person should know of an appliance that is ready.
func (a *appliance) warnings() []string {
	if !a.ready.Load() || a.dhcp == nil {
		return nil
	}
	var out []string
	for _, f := range a.dhcp.Rivals() {
		out = append(out, f.String())
	}
	return out
}

func (a *appliance) httpPart(b *httpBoots) (part, error) {
	l, err := listenLimited(a.c.HTTP.Listen, maxConnsPerAddr)
	if err != nil {
		return part{}, err
	}
	boots := ipxe.NewHandler(a.assets, meteredBoots{b, a.meters}, ipxe.Pacing{Rate: a.c.HTTP.BootRate * 1_000_000}, a.log)
	srv := ipxe.NewServer(a.withMetadata(b.tracker, boots), a.log)
	return part{name: "HTTP", run: func(ctx context.Context) error { return srv.Serve(ctx, l) }}, nil
}

func (a *appliance) workerPart() (part, error) {
	l, err := listenLimited(a.c.Worker.Listen, maxConnsPerAddr)
	if err != nil {
		return part{}, err
	}
	srv := workergrpc.New(a.engine, a.id.cert, time.Now, a.log)
	return part{name: "worker gRPC", run: func(ctx context.Context) error {
		select {
		case <-a.engine.Ready(): // a worker that came before would find no workflow
		case <-ctx.Done():
			return l.Close()
		}
		return srv.Serve(ctx, l)
	}}, nil
}

func (a *appliance) tftpPart(b *httpBoots) (part, error) {
	listen, err := listenAddr(a.c.TFTP.Listen)
	if err != nil {
		return part{}, err
	}
	srv, err := tftp.New(tftp.Config{Listen: listen, Handler: tftpFiles{ipxe.NewTFTPFiles(a.assets, b, b.httpPort, a.log), a.inReach}, Observer: meteredTFTP{b.tracker, a.meters}, Log: a.log})
	if err != nil {
		return part{}, err
	}
	return part{name: "TFTP", run: srv.Run, ready: srv.Ready()}, nil
}

func (a *appliance) dhcpPart(t *tracker, httpPort uint16) (part, error) {
	programs, err := a.c.DHCP.programs()
	if err != nil {
		return part{}, err
	}
	every := time.Duration(0)
	if a.c.DHCP.SearchOtherServers {
		every = dhcp.DefaultSearch
	}
	srv, err := dhcp.New(dhcp.Config{
		SearchEvery: every, Found: a.found,
		Interfaces: a.c.Interfaces, HTTPPort: httpPort, Programs: programs, View: a.db.View(), Leases: newLeaseAdapter(meteredLeases{a.kv.Leases(), a.meters}, t),
		Boots: dhcpBoots{t}, Metrics: dhcp.NewMetrics(a.reg), Strangers: a.unknown, Log: a.log,
	})
	if err != nil {
		return part{}, err
	}
	a.dhcp = srv
	return part{name: "DHCP", run: srv.Run, ready: srv.Ready()}, nil
}

// found keeps the event of what a search for other DHCP servers came to.
func (a *appliance) found(f dhcp.Finding) {
	now, why := time.Now(), hardware.ReasonOtherDHCP
	if !f.Rival.Server.IsValid() {
		why = hardware.ReasonNoOtherDHCP
	}
	a.recorder.Note(workflow.Event{Reason: why, Detail: f.String(), Count: 1, First: now, Last: now})
}

func (a *appliance) ndpPart(t *tracker) (part, error) {
	srv, err := ndp.New(ndp.Config{Interfaces: a.c.Interfaces, Booting: dhcpBoots{t}, Metrics: ndp.NewMetrics(a.reg), Log: a.log})
	if err != nil {
		return part{}, err
	}
	return part{name: "NDP", run: srv.Run, ready: srv.Ready()}, nil
}

// tftpFiles gives ipxe's files to tftp; the two packages do not know each other.
type tftpFiles struct {
	files *ipxe.TFTPFiles
	// inReach: nil is everybody.
	inReach func(netip.Addr) bool
}

// errOutOfReach is for a request from where no machine of ours can be.
var errOutOfReach = errors.New("no Subnet record covers the client's address")

// Open implements tftp.Handler.
func (f tftpFiles) Open(ctx context.Context, client netip.AddrPort, name string) (tftp.File, error) {
	if f.inReach != nil && !f.inReach(client.Addr()) {
		return nil, errOutOfReach
	}
	return f.files.Open(ctx, client, name)
}

// inReach reports whether a machine of ours can have the address: one of a Subnet's. TFTP
// answers a forged request of some bytes with a block, again and again, so it is not to
// be aimed at others. Where another server does all of DHCP there need be no Subnet.
func (a *appliance) inReach(client netip.Addr) bool {
	subnets := a.db.View().Subnets()
	if !a.c.DHCP.Enabled || len(subnets) == 0 || client.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(subnets, func(s *hardware.Subnet) bool { return s.Spec.Prefix.Contains(client.Unmap()) })
}

// leaseAdapter is the lease journal as DHCP sees it.
type leaseAdapter struct {
	store.Leases
	tracker *tracker
}

func newLeaseAdapter(l store.Leases, t *tracker) leaseAdapter {
	t.leased(l.List()...)
	return leaseAdapter{l, t}
}

// Confirm implements dhcp.Leases.
func (l leaseAdapter) Confirm(ctx context.Context, x hardware.Lease) error {
	err := l.Put(ctx, x)
	if err == nil {
		l.tracker.leased(x)
	}
	return err
}
