package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

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

type daemonKey struct{}

// daemon is REST over the real store, engine and image files, and one worker.
type daemon struct {
	db      *store.DB
	leases  store.Leases
	e       *workflow.Engine
	logs    *logs.Logs
	socket  string
	remote  *httptest.Server // for callers with tokens
	stop    func()
	session *workflow.Session
	running workflow.Assignment
	mu      sync.Mutex
	passed  time.Duration // on the clock of engine and store
}

func (d *daemon) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC).Add(d.passed)
}

// unknown are two machines without a record; what one says of itself is too long.
type unknown struct{ now func() time.Time }

// bootFiles are one of ours and one that replaces ours.
func bootFiles() ([]api.BootFile, error) {
	sum := strings.Repeat("a", 64)
	return []api.BootFile{
		{Name: "snponly.efi", Bytes: 174_000, SHA256: sum, Origin: "debian", Package: "ipxe", Version: "1.0"},
		{Name: "ipxe.efi", Bytes: 1_000_000, SHA256: sum, Origin: "operator", Path: "/var/lib/rackstrap/boot/ipxe.efi", Modified: time.Unix(0, 0), Replaces: "ipxe 1.0"},
	}, nil
}

func (u unknown) Strangers() []api.Stranger {
	return []api.Stranger{
		{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 9}, Reason: hardware.ReasonUnknownMachine, First: u.now().Add(-time.Hour), Last: u.now(), Count: 3, Vendor: "udhcp" + strings.Repeat("x", 200), Interface: "eth1", Firmware: hardware.FirmwareNone},
		{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 8}, Reason: hardware.ReasonUnknownMachine, First: u.now().Add(-time.Hour), Last: u.now(), Count: 1, Vendor: "PXEClient\x1b[2J", Interface: "eth1", Firmware: hardware.FirmwareUEFI},
	}
}

// bench is the power switch of the tests' machines: a person's, but for one machine
// whose controller refuses.
type bench struct{}

func (bench) Do(_ context.Context, h *hardware.Hardware, action, _ string) (workflow.PowerOutcome, error) {
	if h.Meta.Name == "m2" {
		return workflow.PowerOutcome{}, errors.New("10.0.0.9 answered 403")
	}
	return workflow.PowerOutcome{Driver: "manual", Message: "press the button of " + h.Meta.Name + ": " + action}, nil
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

func newDaemon(env *testscript.Env) (*daemon, error) {
	d := &daemon{}
	// not the script's directory: a socket's path has at most 107 bytes
	dir, err := os.MkdirTemp("", "rs")
	if err != nil {
		return nil, err
	}
	env.Defer(func() { _ = os.RemoveAll(dir) })
	kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
	if err != nil {
		return nil, err
	}
	env.Defer(func() { _ = kv.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	d.leases = kv.Leases()
	if d.db, err = store.Open(ctx, kv, filepath.Join(dir, "key"), store.Options{Now: d.now, Leases: d.leases}); err != nil {
		cancel()
		return nil, err
	}
	img, err := image.Open(filepath.Join(dir, "images"), image.Options{Reserve: -1})
	if err != nil {
		cancel()
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	d.logs = logs.Open(filepath.Join(dir, "logs"))
	d.e = workflow.NewEngine(workflow.Config{
		Store: d.db, Templates: d.db.TemplateByName, HardwareByName: d.db.HardwareByName,
		Resolve: resolve,
		Power:   bench{}, Machines: d.db.View().Hardware, Subnets: d.db.View().Subnets, Alike: d.db.View().Alike,
		Logs: d.logs, TokenKey: make([]byte, 32), Now: d.now, Log: log, Note: func(workflow.Event) {},
	})
	f, err := fetch.New(fetch.Options{})
	if err != nil {
		cancel()
		return nil, err
	}
	images := catalogue.New(catalogue.Config{Records: d.db, Files: img, Fetch: f, Now: time.Now, Log: log})
	done := make(chan error, 4)
	go func() { done <- images.Run(ctx) }()
	go func() { done <- d.e.Run(ctx) }()
	go func() { done <- d.db.Run(ctx) }()
	<-d.e.Ready()
	d.socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		cancel()
		return nil, err
	}
	handler := rest.New(rest.Deps{
		Tokens: d.db, Audit: d.db.AppendEvent, Revoke: d.revoke,
		Records: d.db, Engine: d.e, Logs: d.logs, Dry: d.dry, Backups: backups{kv, dir, filepath.Join(dir, "key")}, Images: images, Strangers: unknown{time.Now}, BootFileList: bootFiles, Version: "1.2.3", Now: time.Now, Log: log,
	})
	d.remote = httptest.NewTLSServer(handler.Remote())
	srv := &http.Server{
		Handler:     handler,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { done <- srv.Serve(l) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		d.remote.CloseClientConnections()
		d.remote.Close()
		_ = srv.Close()
		for range 4 {
			<-done
		}
	})
	env.Defer(d.stop)
	// A server whose file is another one each time.
	var asked atomic.Int64
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "operating system %d", asked.Add(1))
	}))
	env.Defer(files.Close)
	env.Setenv("FILES", files.URL)
	return d, nil
}

func of(ts *testscript.TestScript) *daemon { return ts.Value(daemonKey{}).(*daemon) }

func (d *daemon) revoke(ctx context.Context, subnet string, mac hardware.MAC) (hardware.Lease, bool, error) {
	l, ok := d.leases.Get(subnet, mac)
	return l, ok, d.leases.Delete(ctx, subnet, mac)
}

// lend SUBNET MAC ADDRESS active|expired|released|reserved|quarantined: DHCP did that.
func lendCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := of(ts)
	mac, err := hardware.ParseMAC(args[1])
	ts.Check(err)
	l := hardware.Lease{Subnet: args[0], MAC: mac, Addr: netip.MustParseAddr(args[2]), Hostname: "host", Expires: time.Now().Add(30 * time.Minute)}
	switch args[3] {
	case "expired":
		l.Expires = time.Now().Add(-2 * time.Hour)
	case "released":
		l.Released, l.Expires = true, time.Now().Add(-2*time.Hour)
	case "reserved":
		l.Reservation = true
	case "quarantined":
		l.Declined, l.Hostname, l.UsedBy, l.MAC = true, "", mac, hardware.QuarantineMAC(l.Addr)
	}
	ts.Check(d.leases.Put(context.Background(), l))
}

// boot NAME: the machine is powered on and its worker connects.
func bootCmd(ts *testscript.TestScript, _ bool, args []string) {
	d, ctx := of(ts), context.Background()
	h, err := d.db.HardwareByName(ctx, args[0])
	ts.Check(err)
	addr := h.Spec.Interfaces[0].Addresses[0].Addr()
	b, err := d.e.FirstPacket(ctx, workflow.FirstPacket{Hardware: h.Meta.UID, MAC: h.Spec.Interfaces[0].MAC, XID: 7, Firmware: hardware.FirmwareUEFI})
	ts.Check(err)
	ts.Check(d.e.Acked(ctx, h.Meta.UID, b.ID, addr, netip.MustParseAddr("10.0.0.1"), false))
	g, err := d.e.Script(ctx, h.Meta.UID, addr)
	ts.Check(err)
	adm, err := d.e.Redeem(ctx, g.Token, make([]byte, 32), addr)
	ts.Check(err)
	d.session, err = d.e.Attach(ctx, adm, nil)
	ts.Check(err)
	ts.Check(d.session.Facts(ctx, &hardware.Facts{
		Vendor: "Dell Inc.", Product: "R650", Serial: "7XK2Z93", CPUs: 16, MemoryBytes: 64 << 30, Firmware: "uefi", SecureBoot: "off",
		BMC:   &hardware.BMCFact{Address: netip.MustParseAddr("10.9.0.5"), VLAN: 12},
		Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: 1 << 30}},
	}))
	d.take(ts)
}

func (d *daemon) take(*testscript.TestScript) {
	for _, c := range d.session.Take() {
		if c.Assign != nil {
			d.running = c.Assign.Assignment
		}
	}
}

// act STATE [MESSAGE]: the running action ends so, for good; wiped is succeeded,
// with a proof.
func actCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := of(ts)
	r := workflow.Report{Assignment: d.running, Outcome: workflow.Outcome(args[0]), Permanent: true}
	if len(args) > 1 {
		r.Message = args[1]
	}
	if args[0] == "wiped" {
		r.Outcome = workflow.StateSucceeded
		r.Result.Wiped = []hardware.WipedDisk{{Path: "/dev/sda", Bytes: 1 << 30, Method: "overwrite", Verified: 1 << 26}}
	}
	if r.Outcome == workflow.StateSucceeded {
		r.Result.WrittenBytes = 2_000_000
	}
	d.mu.Lock()
	d.passed += 2 * time.Second
	d.mu.Unlock()
	ts.Check(d.session.Report(context.Background(), r))
	d.take(ts)
}

// says TEXT: the running attempt writes that line into its log.
func saysCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := of(ts)
	d.take(ts)
	d.session.Log(d.running, []byte(args[0]+"\n"))
}

// found NAME FILE [CONFLICT]: discovery made the record, and the facts are those of the
// file.
func foundCmd(ts *testscript.TestScript, _ bool, args []string) {
	d, ctx := of(ts), context.Background()
	h, err := d.db.HardwareByName(ctx, args[0])
	ts.Check(err)
	m, err := d.db.Machine(ctx, h.Meta.UID)
	ts.Check(err)
	f := new(hardware.Facts)
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), f))
	m.Status.State, m.Status.Discovered = hardware.StatePending, d.now()
	if len(args) > 2 {
		m.Status.Conflicts = []hardware.IdentityConflict{{Kind: hardware.ConflictKind(args[2]), Detail: "m9 has it too", Since: d.now()}}
	}
	ts.Check(d.db.Commit(ctx, &workflow.Change{Machine: m, Facts: f}))
}

// progress DONE TOTAL: the worker says how far it is.
func progressCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := of(ts)
	done, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	total, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	d.session.Progress(workflow.Progress{Action: d.running.Action, Attempt: d.running.Attempt, Done: done, Total: total})
}

// exits CODE COMMAND...: the command ends with that code.
func exitsCmd(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		code = ee.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// stop: the daemon is stopped.
func stopCmd(ts *testscript.TestScript, _ bool, _ []string) { of(ts).stop() }
