package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/workflow"
)

const testToken = "tok-3f9c-very-secret"

// fake is a runner that a test drives.
type fake struct {
	started chan string
	finish  chan error
	result  action.Result
	deaf    bool // does not listen to its context
}

func (f *fake) Run(ctx context.Context, env action.Env, _ json.RawMessage) (action.Result, error) {
	env.Log.Info("running")
	env.Progress(action.Progress{Done: 50, Total: 100, Written: 70, Note: "half"})
	f.started <- "start"
	done := ctx.Done()
	if f.deaf {
		done = nil
	}
	select {
	case err := <-f.finish:
		return f.result, err
	case <-done:
		return action.Result{}, fmt.Errorf("stopped: %w", ctx.Err())
	}
}

// bench is one worker in a test.
type bench struct {
	*appliance
	fake   *fake
	ends   chan End
	cancel context.CancelFunc

	mu    sync.Mutex
	lines []string
	clock []time.Time
}

func (b *bench) console() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

// startWorker runs a Session against a, pinned to pin.
func startWorker(t *testing.T, a *appliance, pin [32]byte) *bench {
	t.Helper()
	b := &bench{appliance: a, ends: make(chan End, 1), fake: &fake{started: make(chan string, 8), finish: make(chan error)}}
	runner := func(res action.Result) action.Runner {
		return &fake{started: b.fake.started, finish: b.fake.finish, result: res}
	}
	s, err := NewSession(Config{
		Params: Params{Server: a.addr, Token: testToken, CA: pin}, Version: "test",
		Env: func() action.Env { return action.Env{} },
		Runners: map[workflow.Kind]action.Runner{
			"image.write": runner(action.Result{Message: "written", SourceBytes: 1, WrittenBytes: 2, Disk: "/dev/vda", Checksum: "sha256:00"}),
			"reboot":      runner(action.Result{Message: "restarting", After: action.Reboot}),
			"broken":      broken{},
			"file.write":  action.Runners()[workflow.KindFileWrite],
		},
		Facts: func(_ context.Context, report func(hardware.Facts)) {
			report(hardware.Facts{CPUs: 7, Disks: []hardware.DiskFact{{Path: "/dev/vda", Layout: &hardware.Layout{Table: hardware.TableNone}}}})
		},
		Look: func(_ context.Context, disks []hardware.DiskFact) {
			for i := range disks {
				disks[i].Layout = &hardware.Layout{Table: hardware.TableGPT}
			}
		},
		Uptime: func() time.Duration { return 1234 * time.Millisecond },
		SetClock: func(at time.Time) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.clock = append(b.clock, at)
			return nil
		},
		Say: func(format string, args ...any) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.lines = append(b.lines, fmt.Sprintf(format, args...))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.ends <- s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if out := b.console(); strings.Contains(out, testToken) || strings.Contains(out, "hunter2") {
			t.Errorf("a secret is on the console:\n%s", out)
		}
	})
	return b
}

type broken struct{}

func (broken) Run(context.Context, action.Env, json.RawMessage) (action.Result, error) {
	panic("nil map")
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ca := newAuthority(t, true)
	return startWorker(t, startAppliance(t, chain(ca.leaf(t), ca)), ca.pin())
}

func (b *bench) ended(t *testing.T) End {
	t.Helper()
	select {
	case e := <-b.ends:
		return e
	case <-time.After(testLimit):
		t.Fatal("the session goes on")
		return End{}
	}
}

func (b *bench) wait(t *testing.T) {
	t.Helper()
	select {
	case <-b.fake.started:
	case <-time.After(testLimit):
		t.Fatal("the action does not start")
	}
}

func TestHelloFactsAndOneAction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.welcome(t)
	if h := k.hello; h.GetProtocol() != Protocol || h.GetToken() != testToken || h.GetWorkerVersion() != "test" || h.GetKernelMs() != 1234 || h.GetRunning() != nil {
		t.Errorf("hello is %v", h)
	}
	facts := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
	var f hardware.Facts
	if err := json.Unmarshal(facts.GetFacts().GetJson(), &f); err != nil || f.CPUs != 7 || f.Worker != "test" || facts.GetSeq() == 0 {
		t.Errorf("facts are %+v, number %d, %v", f, facts.GetSeq(), err)
	}
	a := k.assign(t, "image.write", 1, 0, 0)
	b.wait(t)
	p := k.next(t, "progress", func(m *workerpb.Up) bool { return m.GetProgress() != nil }).GetProgress()
	if p.GetDone() != 50 || p.GetTotal() != 100 || p.GetWritten() != 70 || p.GetNote() != "half" || keyOf(p.GetAssignment()) != keyOf(a) {
		t.Errorf("progress is %v", p)
	}
	b.fake.finish <- nil
	r := k.report(t)
	if got := r.GetReport(); got.GetOutcome() != workerpb.Outcome_OUTCOME_SUCCEEDED || got.GetMessage() != "written" ||
		got.GetSourceBytes() != 1 || got.GetWrittenBytes() != 2 || got.GetDisk() != "/dev/vda" || got.GetChecksum() != "sha256:00" {
		t.Errorf("report is %v", got)
	}
	if out := b.console(); !strings.Contains(out, "this machine is m1") || !strings.Contains(out, "2/3 step (image.write)") {
		t.Errorf("the console lacks who and what:\n%s", out)
	}
	if len(b.clock) != 1 {
		t.Errorf("the clock was set %d times", len(b.clock))
	}
}

// What the actions left on the disks is reported once, before the end of the last one;
// or when one fails.
func TestLooksAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		actions []string
		failure error
		looks   int
	}{
		"restarts":          {[]string{"image.write", "image.write", "reboot"}, nil, 1},
		"the last of three": {[]string{"reboot", "image.write", "image.write"}, nil, 1},
		"fails":             {[]string{"image.write"}, errors.New("no such disk"), 1},
		"goes on":           {[]string{"image.write", "image.write"}, nil, 0},
		"writes nothing":    {[]string{"reboot"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			k := b.welcome(t)
			read := func(m *workerpb.Up) (f hardware.Facts) {
				if err := json.Unmarshal(m.GetFacts().GetJson(), &f); err != nil {
					t.Fatal(err)
				}
				return f
			}
			first := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
			if got := read(first).Disks[0].Layout; got.Table != hardware.TableNone {
				t.Errorf("at first the layout is %+v", got)
			}
			var looks []hardware.Facts
			for i, kind := range tt.actions {
				k.assign(t, kind, uint32(i), 0, 0)
				b.wait(t)
				b.fake.finish <- tt.failure
				for {
					m := k.next(t, "report or facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil || m.GetReport() != nil })
					if m.GetReport() != nil {
						break
					}
					looks = append(looks, read(m))
				}
			}
			if len(looks) != tt.looks {
				t.Fatalf("%d looks, want %d", len(looks), tt.looks)
			}
			for _, f := range looks {
				if f.CPUs != 7 || f.Disks[0].Layout.Table != hardware.TableGPT {
					t.Errorf("facts are %+v", f)
				}
			}
		})
	}
}

func TestReconnectKeepsTheAction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.welcome(t)
	a := k.assign(t, "image.write", 0, 0, 0)
	b.wait(t)
	b.restart(t)
	k = b.welcome(t)
	if keyOf(k.hello.GetRunning()) != keyOf(a) {
		t.Fatalf("hello says that %v runs", k.hello.GetRunning())
	}
	// A duplicate is no new start, and the report comes on the new connection.
	k.assign(t, "image.write", 0, 0, 0)
	b.fake.finish <- nil
	if r := k.report(t); r.GetReport().GetOutcome() != workerpb.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("report is %v", r)
	}
	select {
	case <-b.fake.started:
		t.Error("the action was started twice")
	default:
	}
}

func TestReportIsRepeatedUntilAcknowledged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.welcome(t)
	a := k.assign(t, "image.write", 0, 0, 0)
	b.wait(t)
	b.fake.finish <- nil
	first := k.report(t)
	b.restart(t) // before the ack
	k = b.welcome(t)
	if keyOf(k.hello.GetRunning()) != keyOf(a) {
		t.Errorf("with its report on the way, hello says that %v runs", k.hello.GetRunning())
	}
	again := k.report(t)
	if again.GetSeq() != first.GetSeq() {
		t.Errorf("the repeated report has number %d, before it had %d", again.GetSeq(), first.GetSeq())
	}
	k.ack(t, again.GetSeq())
	// The appliance has forgotten and asks for the attempt again: told, not run.
	k.assign(t, "image.write", 0, 0, 0)
	if r := k.report(t); r.GetReport().GetMessage() != "written" || len(b.fake.started) != 0 {
		t.Errorf("an ended attempt was answered with %v", r)
	} else {
		k.ack(t, r.GetSeq())
	}
	k.assign(t, "image.write", 0, 1, 0)
	b.wait(t)
}

func TestEndsOfAnAction(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, kind string
		timeout    time.Duration
		do         func(t *testing.T, b *bench, k *link, a *workerpb.Assignment)
		outcome    workerpb.Outcome
		permanent  bool
		message    string
	}{
		{"fails", "image.write", 0, func(_ *testing.T, b *bench, _ *link, _ *workerpb.Assignment) {
			b.fake.finish <- errors.New("no such disk")
		}, workerpb.Outcome_OUTCOME_FAILED, false, "no such disk"},
		{"times out", "image.write", 20 * time.Millisecond, nil, workerpb.Outcome_OUTCOME_TIMED_OUT, false, "ran out of time"},
		{"is cancelled", "image.write", 0, func(t *testing.T, _ *bench, k *link, a *workerpb.Assignment) {
			k.send(t, &workerpb.Down{Body: &workerpb.Down_Cancel{Cancel: &workerpb.Cancel{Assignment: a, Reason: "operator"}}})
		}, workerpb.Outcome_OUTCOME_CANCELLED, false, "cancelled by the appliance"},
		{"is replaced", "image.write", 0, func(t *testing.T, _ *bench, k *link, _ *workerpb.Assignment) {
			k.assign(t, "image.write", 0, 5, 0)
		}, workerpb.Outcome_OUTCOME_CANCELLED, false, "went on to another attempt"},
		{"breaks", "broken", 0, nil, workerpb.Outcome_OUTCOME_FAILED, false, "nil map"},
		{"is not known", "teleport", 0, nil, workerpb.Outcome_OUTCOME_FAILED, true, `no action "teleport"`},
		{"has bad options", "file.write", 0, nil, workerpb.Outcome_OUTCOME_FAILED, true, "secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			k := b.welcome(t)
			a := k.assign(t, tt.kind, 0, 0, tt.timeout)
			if tt.kind == "image.write" {
				b.wait(t)
			}
			if tt.do != nil {
				tt.do(t, b, k, a)
			}
			r := k.report(t).GetReport()
			if r.GetUntouched() != tt.permanent { // those never began
				t.Errorf("untouched is %t: %v", r.GetUntouched(), r)
			}
			if r.GetOutcome() != tt.outcome || r.GetPermanent() != tt.permanent || !strings.Contains(r.GetMessage(), tt.message) || keyOf(r.GetAssignment()) != keyOf(a) {
				t.Errorf("report is %v", r)
			}
		})
	}
}

func TestRebootWaitsForTheAck(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.welcome(t)
	k.ack(t, k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil }).GetSeq())
	k.assign(t, "reboot", 2, 0, 0)
	b.wait(t)
	b.fake.finish <- nil
	first := k.report(t)
	b.restart(t)
	k = b.welcome(t)
	if seq := k.report(t).GetSeq(); seq != first.GetSeq() {
		t.Errorf("number %d became %d", first.GetSeq(), seq)
	}
	select {
	case e := <-b.ends:
		t.Fatalf("the machine leaves before the appliance knows: %+v", e)
	default:
	}
	k.ack(t, first.GetSeq())
	if e := b.ended(t); e.What != pid1.Restart || e.Fault {
		t.Errorf("the end is %+v", e)
	}
}

func TestFinish(t *testing.T) {
	t.Parallel()
	for what, want := range map[workerpb.Finish_What]pid1.PowerAction{
		workerpb.Finish_WHAT_REBOOT:    pid1.Restart,
		workerpb.Finish_WHAT_POWER_OFF: pid1.PowerOff,
	} {
		b := newBench(t)
		k := b.welcome(t)
		k.send(t, &workerpb.Down{Body: &workerpb.Down_Finish{Finish: &workerpb.Finish{What: workerpb.Finish_WHAT_WAIT, Reason: "later"}}})
		facts := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
		k.send(t, &workerpb.Down{Body: &workerpb.Down_Finish{Finish: &workerpb.Finish{What: what, Reason: "done"}}})
		select {
		case e := <-b.ends:
			t.Fatalf("the machine leaves before the appliance has its facts: %+v", e)
		default:
		}
		k.ack(t, facts.GetSeq())
		if e := b.ended(t); e.What != want || e.Reason != "done" || e.Fault {
			t.Errorf("%v ended with %+v", what, e)
		}
		if out := b.console(); !strings.Contains(out, "waiting for work: later") {
			t.Errorf("the console does not say what it waits for:\n%s", out)
		}
	}
}

func TestRefusalsEndTheSession(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		status.Error(codes.Unauthenticated, "a worker came with a token that has expired"),
		status.Error(codes.FailedPrecondition, "worker protocol 1 is not spoken here"),
	} {
		b := newBench(t)
		b.accept(t).end <- err
		if e := b.ended(t); e.What != pid1.Restart || !e.Fault || !strings.Contains(e.Reason, status.Convert(err).Message()) {
			t.Errorf("%v ended with %+v", err, e)
		}
	}
}

func TestOtherFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.accept(t).end <- status.Error(codes.Unavailable, "the appliance cannot write its store; try again")
	b.accept(t).end <- nil
	b.accept(t).end <- status.Error(codes.Aborted, "another connection of this machine took over")
	b.welcome(t)
	if out := b.console(); !strings.Contains(out, "cannot write its store") {
		t.Errorf("the console does not say why:\n%s", out)
	}
}

func TestServersThatAreNotBelieved(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, true), newAuthority(t, true)
	for name, cert := range map[string]struct {
		chain func() []authority
		want  string
	}{
		"another installation":        {func() []authority { return []authority{other.leaf(t), other} }, "does not belong to the installation"},
		"a leaf of another CA":        {func() []authority { return []authority{other.leaf(t), ca} }, "is not signed by the installation's CA"},
		"the public CA shown as leaf": {func() []authority { return []authority{ca} }, "shows the installation's CA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := cert.chain()
			b := startWorker(t, startAppliance(t, chain(shown[0], shown[1:]...)), ca.pin())
			deadline := time.Now().Add(testLimit)
			for !strings.Contains(b.console(), cert.want) {
				if time.Now().After(deadline) {
					t.Fatalf("the console does not say %q:\n%s", cert.want, b.console())
				}
				select {
				case <-b.links:
					t.Fatal("the worker gave its token to a server that it must not believe")
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
}

// TestEnrolTakesNoAction: a machine that nobody accepted does nothing that somebody could
// send it, and comes again as the machine that it became.
func TestEnrolTakesNoAction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.accept(t)
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{Protocol: 1, Machine: "unknown machine", Scope: string(hardware.ScopeEnrol)}}})
	k.assign(t, "image.write", 1, 0, 0)
	facts := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Ack{Ack: &workerpb.Ack{Seq: facts.GetSeq()}}})
	k.end <- status.Error(codes.Aborted, "this machine has the record m9 now")
	k = b.accept(t)
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{Protocol: 1, Machine: "m9", Scope: string(hardware.ScopeEnrol)}}})
	if k.hello.GetRunning() != nil {
		t.Error("it runs the action")
	}
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Finish{Finish: &workerpb.Finish{What: workerpb.Finish_WHAT_REBOOT, Reason: "accepted"}}})
	if e := b.ended(t); e.What != pid1.Restart || e.Fault {
		t.Errorf("it ended with %+v", e)
	}
	select {
	case <-b.fake.started:
		t.Error("the action was started")
	default:
	}
	if out := b.console(); !strings.Contains(out, "this machine is m9") || !strings.Contains(out, "not accepted") {
		t.Errorf("the console says\n%s", out)
	}
}
