package workflow_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// rig is an Engine over the real store, with a clock that the test moves.
type rig struct {
	t   *testing.T
	ctx context.Context
	db  *store.DB
	e   *workflow.Engine
	hw  *hardware.Hardware

	gone  atomic.Bool // the image was deleted
	power controller

	mu    sync.Mutex
	now   time.Time
	notes []workflow.Event
	dir   string
	kv    *bolt.KV
}

type noLogs struct{}

func (noLogs) Append(workflow.Assignment, []byte) error { return nil }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), dir: t.TempDir()}
	r.open()
	mac, _ := hardware.ParseMAC("52:54:00:00:00:01")
	r.hw = &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: mac, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/24")}}}}}
	r.must(r.db.CreateHardware(r.ctx, r.hw))
	r.must(r.db.CreateTemplate(r.ctx, &workflow.Template{
		Meta: hardware.Meta{Name: "install"},
		Spec: workflow.TemplateSpec{
			Parameters: []workflow.Parameter{{Name: "image"}, {Name: "pw", Type: workflow.ParamSecret, Default: ""}},
			Actions: []workflow.ActionSpec{
				{Name: "wipe", Kind: workflow.KindDiskWipe},
				{Name: "write", Kind: workflow.KindImageWrite, With: map[string]any{"image": "${image}"}},
				{Name: "restart", Kind: workflow.KindReboot},
			},
		},
	}))
	r.must(r.db.CreateTemplate(r.ctx, &workflow.Template{
		Meta: hardware.Meta{Name: workflow.ReleaseTemplate},
		Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{
			{Name: "wipe", Kind: workflow.KindDiskWipe, Retries: new(int), With: map[string]any{"disk": "all"}},
			{Name: "off", Kind: workflow.KindPowerOff},
		}},
	}))
	return r
}

// open opens the store and makes an engine over it, as a daemon does at start.
func (r *rig) open() {
	r.t.Helper()
	kv, err := bolt.Open(filepath.Join(r.dir, "db"), bolt.Options{})
	r.must(err)
	r.kv = kv
	r.t.Cleanup(func() { _ = kv.Close() })
	r.db, err = store.Open(r.ctx, kv, filepath.Join(r.dir, "seal.key"), store.Options{Now: r.clock})
	r.must(err)
	r.e = workflow.NewEngine(workflow.Config{
		Store: r.db, Templates: r.db.TemplateByName, HardwareByName: r.db.HardwareByName,
		Resolve: func(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
			if a.Kind == workflow.KindImageWrite && r.gone.Load() {
				return nil, errors.New(`there is no image "debian"`)
			}
			return a.With, nil
		},
		Logs: noLogs{}, TokenKey: make([]byte, 32), Now: r.clock, Log: slog.New(slog.DiscardHandler),
		Power: &r.power, Machines: r.machines, Subnets: r.db.View().Subnets, Alike: r.db.View().Alike, Rules: r.db.View().Rules,
		Note: func(ev workflow.Event) { r.mu.Lock(); r.notes = append(r.notes, ev); r.mu.Unlock() },
	})
	ctx, stop := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- r.e.Run(ctx) }()
	r.t.Cleanup(func() { stop(); <-done })
	<-r.e.Ready()
}

// machines is what the sweep looks at.
func (r *rig) machines() []*hardware.Hardware {
	all, err := r.db.ListHardware(r.ctx)
	if err != nil {
		return nil // the store is closed: the test ends
	}
	return all
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) start(image string) *workflow.Workflow {
	r.t.Helper()
	w, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": image}})
	r.must(err)
	return w
}

var client = netip.MustParseAddr("10.0.0.5")

// boot goes through DHCP to the token, as a machine does that is powered on.
func (r *rig) boot(xid uint32) (hardware.Boot, string) {
	r.t.Helper()
	b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: r.hw.Meta.UID, MAC: r.hw.Spec.Interfaces[0].MAC, XID: xid, Firmware: hardware.FirmwareUEFI})
	r.must(err)
	r.must(r.e.Acked(r.ctx, r.hw.Meta.UID, b.ID, client, netip.MustParseAddr("10.0.0.1"), false))
	g, err := r.e.Script(r.ctx, r.hw.Meta.UID, client)
	r.must(err)
	return b, g.Token
}

func newKey() ed25519.PublicKey {
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return pub
}

// attach is a worker that comes with a token.
func (r *rig) attach(token string, key ed25519.PublicKey, running *workflow.Assignment) *workflow.Session {
	r.t.Helper()
	adm, err := r.e.Redeem(r.ctx, token, key, client)
	r.must(err)
	s, err := r.e.Attach(r.ctx, adm, running)
	r.must(err)
	return s
}

// assigned is the one Assign among what waits for the worker.
func assigned(t *testing.T, s *workflow.Session) *workflow.Assign {
	t.Helper()
	for _, c := range s.Take() {
		if c.Assign != nil {
			return c.Assign
		}
	}
	t.Fatal("no action was assigned")
	return nil
}

func (r *rig) report(s *workflow.Session, a workflow.Assignment, o workflow.Outcome) {
	r.t.Helper()
	r.must(s.Report(r.ctx, workflow.Report{Assignment: a, Outcome: o}))
}

func (r *rig) state() (hardware.Status, workflow.State) {
	r.t.Helper()
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	w, err := r.db.Workflow(r.ctx, h.Status.Workflow)
	r.must(err)
	return h.Status, w.Status.State
}

func TestInstallFromFirstPacketToDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	for range 3 {
		r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	}
	var finish *workflow.Finish
	for _, c := range s.Take() {
		finish = c.Finish
	}
	if finish == nil || finish.What != workflow.FinishReboot {
		t.Errorf("after the last action the worker is told %+v, want reboot", finish)
	}
	hs, ws := r.state()
	if hs.State != hardware.StateProvisioned || !hs.Installed || ws != workflow.StateSucceeded {
		t.Errorf("hardware %+v, workflow %s", hs, ws)
	}
	// allowPXE is true for ever, and yet the machine goes to its disk
	b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: r.hw.Meta.UID, MAC: r.hw.Spec.Interfaces[0].MAC, XID: 9, Firmware: hardware.FirmwareUEFI})
	r.must(err)
	if b.Next.Target != hardware.TargetDisk || b.Next.Reason != hardware.ReasonProvisioned {
		t.Errorf("next boot: %+v", b.Next)
	}
	if _, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "x"}}); err == nil {
		t.Error("a provisioned machine was given to an install without reinstall: true")
	}
}

func TestDaemonRestartInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	_, tok := r.boot(1)
	key := newKey()
	s := r.attach(tok, key, nil)
	a := assigned(t, s)
	r.report(s, a.Assignment, workflow.StateSucceeded)
	a = assigned(t, s)
	r.must(r.kv.Close()) // the daemon is gone, the worker goes on
	r.pass(45 * time.Minute)
	r.open()
	s = r.attach(tok, key, &a.Assignment)
	for _, c := range s.Take() {
		if c.Assign != nil {
			t.Errorf("the running action was assigned again: %+v", c.Assign)
		}
	}
	r.report(s, a.Assignment, workflow.StateSucceeded)
	r.report(s, a.Assignment, workflow.StateSucceeded) // repeated: no-op
	r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	if hs, _ := r.state(); hs.State != hardware.StateProvisioned {
		t.Errorf("state %s", hs.State)
	}
}

func TestPowerCutInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	first := assigned(t, s)
	s.Detach()
	_, tok2 := r.boot(2)
	if tok2 == tok {
		t.Fatal("the second boot has the first one's token")
	}
	s = r.attach(tok2, newKey(), nil)
	second := assigned(t, s)
	if second.Action != first.Action || second.Attempt != first.Attempt+1 {
		t.Errorf("assigned %+v after %+v, want the same action in a new attempt", second.Assignment, first.Assignment)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	b, tok := r.boot(1)
	refused := func(tok string, key ed25519.PublicKey) hardware.Reason {
		t.Helper()
		_, err := r.e.Redeem(r.ctx, tok, key, netip.MustParseAddr("10.0.0.66"))
		var ref *workflow.Refused
		if !errors.As(err, &ref) {
			t.Fatalf("not refused: %v", err)
		}
		return ref.Reason
	}
	if g, err := r.e.Script(r.ctx, r.hw.Meta.UID, netip.MustParseAddr("10.0.0.66")); err != nil || g.Token != "" || g.Reason != hardware.ReasonScriptNoToken {
		t.Errorf("another address got %+v, %v", g, err)
	}
	if g, err := r.e.Script(r.ctx, r.hw.Meta.UID, client); err != nil || g.Token != tok {
		t.Errorf("a refetch gave another token (%v)", err)
	}
	if got := refused("rs1.x.y.z", newKey()); got != hardware.ReasonTokenUnknown {
		t.Errorf("forged: %s", got)
	}
	r.pass(31 * time.Minute)
	if got := refused(tok, newKey()); got != hardware.ReasonTokenExpired {
		t.Errorf("expired: %s", got)
	}
	_, tok2 := r.boot(2)
	if got := refused(tok, newKey()); got != hardware.ReasonTokenSuperseded {
		t.Errorf("of the boot before (%s): %s", b.ID, got)
	}
	key := newKey()
	s := r.attach(tok2, key, nil)
	s.Detach()
	r.pass(3 * time.Hour)
	s = r.attach(tok2, key, nil) // bound: no end while the boot is the current one
	s.Detach()
	if got := refused(tok2, newKey()); got != hardware.ReasonTokenStolen {
		t.Errorf("stolen: %s", got)
	}
	hs, _ := r.state()
	if !hs.Hold || hs.HoldReason != hardware.ReasonTokenStolen {
		t.Errorf("after a second key: %+v", hs)
	}
	if got := refused(tok2, key); got != hardware.ReasonTokenExpired {
		t.Errorf("the first key after the second: %s", got)
	}
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false))
	if got := refused(tok2, key); got != hardware.ReasonTokenExpired {
		t.Errorf("a token that two keys had, after the hold: %s", got)
	}
	r.pass(time.Minute)
	_, tok3 := r.boot(3)
	r.attach(tok3, newKey(), nil)
}

func TestUnresolvableOptionsEndTheWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.start("debian")
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	r.gone.Store(true)
	r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	got, err := r.db.Workflow(r.ctx, w.Meta.Name)
	r.must(err)
	if got.Status.State != workflow.StateFailed || got.Status.Message != `action "write": there is no image "debian"` {
		t.Errorf("%s: %q", got.Status.State, got.Status.Message)
	}
	if hs, _ := r.state(); hs.State != hardware.StateFailed {
		t.Errorf("the wiped machine is %s", hs.State)
	}
}

func TestUnknownImageIsRefusedBeforeTheWipe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gone.Store(true)
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "debian"}})
	var bad *hardware.Invalid
	if !errors.As(err, &bad) {
		t.Fatalf("got %v", err)
	}
}

// TestSwitchesBindAConnectedWorker shows that hold and allowWorkflow keep a worker
// that is there already from being given the next action, until they are undone.
func TestSwitchesBindAConnectedWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	_, tok := r.boot(1)
	key := newKey()
	s := r.attach(tok, key, nil)
	first := assigned(t, s)
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, true))
	r.report(s, first.Assignment, workflow.StateSucceeded)
	none := func(when string) {
		t.Helper()
		for _, c := range s.Take() {
			if c.Assign != nil {
				t.Fatalf("%s: the worker was given %s", when, c.Assign.Name)
			}
		}
	}
	none("on hold")
	s = r.attach(tok, key, nil) // a reconnect on hold is let in, and waits
	none("on hold, after a reconnect")
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false))
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	no := false
	h.Spec.Netboot.AllowWorkflow = &no
	r.must(r.db.UpdateHardware(r.ctx, h))
	s = r.attach(tok, key, nil)
	none("allowWorkflow: false")
	h.Spec.Netboot.AllowWorkflow, h.Meta.Revision = nil, 0
	r.must(r.db.UpdateHardware(r.ctx, h))
	r.pass(time.Minute)
	<-s.Wake() // by the engine's clock
	if a := assigned(t, s); a.Action != 1 {
		t.Errorf("assigned action %d, want 1", a.Action)
	}
}

func TestSwitchBetweenScriptAndWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	_, tok := r.boot(1)
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	no := false
	h.Spec.Netboot.AllowWorkflow = &no
	r.must(r.db.UpdateHardware(r.ctx, h))
	_, err = r.e.Redeem(r.ctx, tok, newKey(), client)
	var ref *workflow.Refused
	if !errors.As(err, &ref) || ref.Reason != hardware.ReasonWorkflowDenied {
		t.Errorf("got %v", err)
	}
}

func TestCancelBeforeAnythingLeavesTheMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.start("debian")
	if hs, _ := r.state(); hs.State != hardware.StateProvisioning {
		t.Errorf("state %s", hs.State)
	}
	_, err := r.e.CreateWorkflow(r.ctx, "other", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "x"}})
	if !errors.Is(err, workflow.ErrInUse) {
		t.Errorf("a second workflow: %v", err)
	}
	_, err = r.e.CancelWorkflow(r.ctx, w.Meta.Name, "changed my mind")
	r.must(err)
	if hs, ws := r.state(); hs.State != hardware.StateAvailable || ws != workflow.StateCancelled {
		t.Errorf("%s, %s", hs.State, ws)
	}
	r.start("debian")
}

func TestProtectedMachineIsNotWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	h.Spec.Protect = true
	r.must(r.db.UpdateHardware(r.ctx, h))
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	for _, c := range s.Take() {
		if c.Assign != nil {
			t.Fatalf("a protected machine was given %s", c.Assign.Kind)
		}
	}
	if _, ws := r.state(); ws != workflow.StateFailed {
		t.Errorf("workflow %s", ws)
	}
}

// TestManyAtOnce drives forty machines through an install at the same time.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var wg sync.WaitGroup
	errs := make(chan error, 40)
	for i := range 40 {
		wg.Go(func() { errs <- r.installOne(i) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

func (r *rig) installOne(i int) error {
	h := &hardware.Hardware{Meta: hardware.Meta{Name: fmt.Sprintf("n%d", i)}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, byte(i)}}}}}
	if err := r.db.CreateHardware(r.ctx, h); err != nil {
		return err
	}
	if _, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: "install", Params: map[string]any{"image": "x"}}); err != nil {
		return err
	}
	addr := netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
	b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: h.Meta.UID, MAC: h.Spec.Interfaces[0].MAC, XID: uint32(i), Firmware: hardware.FirmwareBIOS})
	if err != nil {
		return err
	}
	if err := r.e.Acked(r.ctx, h.Meta.UID, b.ID, addr, client, false); err != nil {
		return err
	}
	g, err := r.e.Script(r.ctx, h.Meta.UID, addr)
	if err != nil {
		return err
	}
	adm, err := r.e.Redeem(r.ctx, g.Token, newKey(), addr)
	if err != nil {
		return err
	}
	s, err := r.e.Attach(r.ctx, adm, nil)
	if err != nil {
		return err
	}
	for range 3 {
		<-s.Wake()
		for _, c := range s.Take() {
			if c.Assign == nil {
				continue
			}
			if err := s.Report(r.ctx, workflow.Report{Assignment: c.Assign.Assignment, Outcome: workflow.StateSucceeded}); err != nil {
				return err
			}
		}
	}
	h, err = r.db.HardwareByName(r.ctx, h.Meta.Name)
	if err == nil && h.Status.State != hardware.StateProvisioned {
		err = fmt.Errorf("%s is %s", h.Meta.Name, h.Status.State)
	}
	return err
}
