package workflow

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

var t0 = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

// newRun is a workflow of three actions with one retry each.
func newRun() *Workflow {
	w := &Workflow{Meta: hardware.Meta{Name: "install-m1", UID: "w1"}, Spec: WorkflowSpec{Hardware: "m1"}, Status: Status{State: StatePending, HardwareUID: "h1"}}
	for _, k := range []Kind{KindDiskWipe, KindImageWrite, KindReboot} {
		w.Status.Actions = append(w.Status.Actions, Action{Name: strings.ReplaceAll(string(k), ".", "-"), Kind: k, State: StatePending, Retries: 1, Timeout: hardware.Duration(10 * time.Minute)})
	}
	return w
}

// story drives one workflow by a line of words, so that a test reads as what
// happened. Each word is one input.
type story struct {
	t    *testing.T
	w    *Workflow
	now  time.Time
	boot string
	out  []string
}

func (s *story) do(words string) *story {
	s.t.Helper()
	for word := range strings.FieldsSeq(words) {
		verb, arg, _ := strings.Cut(word, ":")
		var in Input
		switch verb {
		case "worker": // worker:boot[+busy]
			boot, busy := strings.CutSuffix(arg, "+busy")
			s.boot = boot
			in.Worker = &WorkerInput{Boot: boot}
			if busy {
				a := s.last()
				in.Worker.Running = &a
			}
		case "gone":
			s.boot = ""
			continue
		case "ok", "fail", "fatal", "stopped", "late":
			r := Report{Assignment: s.last(), Message: "msg", Outcome: map[string]State{"ok": StateSucceeded, "fail": StateFailed, "fatal": StateFailed, "stopped": StateCancelled, "late": StateTimedOut}[verb], Permanent: verb == "fatal"}
			in.Report = &r
		case "ok-md5":
			in.Report = &Report{Assignment: s.last(), Outcome: StateSucceeded, Result: Result{Checksum: "sha256:aa", Compared: "md5:bb"}}
		case "cancel":
			why := "by test"
			in.Cancel = &why
		case "wait":
			d, err := time.ParseDuration(arg)
			if err != nil {
				s.t.Fatal(err)
			}
			s.now = s.now.Add(d)
		default:
			s.t.Fatalf("unknown word %q", word)
		}
		st := s.w.Next(in, Context{Now: s.now, Boot: s.boot})
		for _, e := range st.Events {
			s.out = append(s.out, string(e.Reason))
		}
		if st.Start != nil {
			s.out = append(s.out, "START")
		}
		if st.Stop != nil {
			s.out = append(s.out, "STOP")
		}
	}
	return s
}

func (s *story) last() Assignment {
	a := &s.w.Status.Actions[s.w.Status.Current]
	return Assignment{Workflow: "w1", Action: s.w.Status.Current, Attempt: len(a.Attempts) - 1}
}

func TestNextStories(t *testing.T) {
	t.Parallel()
	const started = "workflow-started action-started START"
	for _, tt := range []struct {
		name, in, want string
		state          State
	}{
		{
			"a straight run", "worker:b1 ok ok ok",
			started + " action-succeeded action-started START action-succeeded action-started START action-succeeded workflow-succeeded", StateSucceeded,
		},
		{"an image known by its MD5", "worker:b1 ok-md5", started + " action-succeeded weak-checksum action-started START", StateRunning},
		{"nothing before a worker is there", "wait:1h", "", StatePending},
		{
			"a failed attempt is tried again after its pause", "worker:b1 fail wait:4s wait:1s ok",
			started + " action-failed action-retry action-started START action-succeeded action-started START", StateRunning,
		},
		{"the retries end", "worker:b1 fail wait:5s fail", started + " action-failed action-retry action-started START action-failed workflow-failed", StateFailed},
		{"a permanent error is not tried again", "worker:b1 fatal", started + " action-failed workflow-failed", StateFailed},
		{"a connection lost and found is nothing", "worker:b1 gone worker:b1+busy ok", started + " action-succeeded action-started START", StateRunning},
		{"an assignment lost on the way is sent again", "worker:b1 gone worker:b1", started + " START", StateRunning},
		{
			"a power cut does not use up a retry", "worker:b1 gone worker:b2 fail wait:5s",
			started + " action-interrupted action-started START action-failed action-retry action-started START", StateRunning,
		},
		{"a repeated report is a no-op", "worker:b1 fail fail", started + " action-failed action-retry", StateRunning},
		{"cancel before it began", "cancel", "workflow-cancelled", StateCancelled},
		{"cancel stops the worker first", "worker:b1 cancel cancel stopped", started + " STOP workflow-cancelled", StateCancelled},
		{"cancel with the worker away", "worker:b1 gone cancel", started + " STOP workflow-cancelled", StateCancelled},
		{"cancel and a worker that does not stop", "worker:b1 cancel wait:61s", started + " STOP STOP workflow-cancelled", StateCancelled},
		{"cancel and a success that came first", "worker:b1 cancel ok", started + " STOP action-succeeded workflow-cancelled", StateCancelled},
		{"cancel and a new boot", "worker:b1 cancel gone worker:b2", started + " STOP workflow-cancelled STOP", StateCancelled},
		{"the worker keeps the time", "worker:b1 late", started + " action-timeout action-retry", StateRunning},
		{"a worker gone for longer than the timeout", "worker:b1 gone wait:11m worker:b2", started + " action-timeout action-retry STOP", StateRunning},
		{"an ended workflow stays as it is", "cancel worker:b1 cancel wait:1h", "workflow-cancelled", StateCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := (&story{t: t, w: newRun(), now: t0}).do(tt.in)
			got := strings.Join(s.out, " ")
			if sortWords(got) != sortWords(tt.want) {
				t.Errorf("%s:\ngot  %s\nwant %s", tt.in, got, tt.want)
			}
			if s.w.Status.State != tt.state {
				t.Errorf("state %s, want %s", s.w.Status.State, tt.state)
			}
		})
	}
}

// sortWords leaves the order alone but for START and STOP, which a step returns
// beside its events.
func sortWords(s string) string {
	var events, cmds []string
	for w := range strings.FieldsSeq(s) {
		if w == "START" || w == "STOP" {
			cmds = append(cmds, w)
		} else {
			events = append(events, w)
		}
	}
	return strings.Join(events, " ") + "|" + strings.Join(cmds, " ")
}

func TestOverallTimeout(t *testing.T) {
	t.Parallel()
	w := newRun()
	w.Status.Timeout = hardware.Duration(5 * time.Minute)
	s := (&story{t: t, w: w, now: t0}).do("wait:1h worker:b1 wait:4m59s wait:1s")
	if w.Status.State != StateTimedOut {
		t.Fatalf("state %s after %v", w.Status.State, s.out)
	}
	if !strings.Contains(w.Status.Message, "5m0s") {
		t.Errorf("message %q does not name the limit", w.Status.Message)
	}
}

func TestNoTimeoutIsForEver(t *testing.T) {
	t.Parallel()
	w := newRun()
	w.Status.Actions[0].Timeout = 0
	(&story{t: t, w: w, now: t0}).do("worker:b1 wait:10000h ok")
	if w.Status.Current != 1 {
		t.Errorf("current action %d, want 1", w.Status.Current)
	}
}

func TestInterruptionsAreBounded(t *testing.T) {
	t.Parallel()
	s := &story{t: t, w: newRun(), now: t0}
	for i := range maxInterrupted + 1 {
		s.do("worker:b" + string(rune('a'+i)))
	}
	if s.w.Status.State != StateFailed || !strings.Contains(s.w.Status.Message, "restarted 10 times") {
		t.Errorf("state %s, message %q", s.w.Status.State, s.w.Status.Message)
	}
}

// TestNextNeverGoesBack throws random words at a workflow: states never move
// backwards, an end is final, at most one attempt runs, and every step wakes up
// again or waits for somebody.
func TestNextNeverGoesBack(t *testing.T) {
	t.Parallel()
	words := []string{"worker:b1", "worker:b1+busy", "worker:b2", "worker:b2+busy", "gone", "ok", "fail", "fatal", "late", "stopped", "cancel", "wait:1s", "wait:6m", "wait:12m"}
	rank := map[State]int{StatePending: 0, StateRunning: 1, StateSucceeded: 2, StateFailed: 2, StateTimedOut: 2, StateCancelled: 2}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &story{t: t, w: newRun(), now: t0}
		for range 40 {
			before, current := s.w.Status.State, s.w.Status.Current
			s.do(words[r.IntN(len(words))])
			after := s.w.Status.State
			if rank[after] < rank[before] || (before.Ended() && after != before) || s.w.Status.Current < current {
				t.Fatalf("seed %d: %s/%d became %s/%d", seed, before, current, after, s.w.Status.Current)
			}
			running := 0
			for _, a := range s.w.Status.Actions {
				for _, at := range a.Attempts {
					if at.State == StateRunning {
						running++
					}
				}
			}
			if running > 1 || (after.Ended() && running > 0) {
				t.Fatalf("seed %d: %d attempts run in state %s", seed, running, after)
			}
		}
	}
}
