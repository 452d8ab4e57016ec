package workflow

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestIssuesGolden shows the issues of every situation, and when they may change.
func TestIssuesGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	kinds := map[hardware.IssueKind]bool{}
	for _, tt := range situations() {
		fmt.Fprintf(&b, "-- %s --\n", tt.name)
		for _, i := range Issues(tt.s) {
			kinds[i.Kind] = true
			fmt.Fprintf(&b, "%s %s (%s): %s\n  %s\n", i.Severity, i.Kind, ago(i.Since, t0), i.Detail, i.Fix)
		}
		if at := NextIssueAt(tt.s); !at.IsZero() {
			fmt.Fprintf(&b, "next in %v\n", at.Sub(t0))
		}
	}
	for _, k := range hardware.IssueKinds() {
		if !kinds[k] {
			t.Errorf("no situation shows the issue %s", k)
		}
	}
	golden(t, "testdata/issues.txtar", b.String())
}

// Each deadline, one second before and at it.
func TestIssueDeadlines(t *testing.T) {
	t.Parallel()
	m := time.Minute
	for _, tt := range []struct {
		name     string
		s        func(age time.Duration) Snapshot
		limit    time.Duration
		kind     hardware.IssueKind
		severity hardware.Severity
	}{
		{"switched on", func(d time.Duration) Snapshot { return with(plain(), install(d+m), webhook(d)) }, NeverSeenAfter, hardware.IssueNeverSeen, hardware.SeverityError},
		{"by hand, a note", func(d time.Duration) Snapshot { return with(plain(), install(d)) }, NeverSeenAfter, hardware.IssueNeverSeen, hardware.SeverityInfo},
		{"by hand", func(d time.Duration) Snapshot { return with(plain(), install(d)) }, NeverSeenByHand, hardware.IssueNeverSeen, hardware.SeverityWarning},
		{"boot", func(d time.Duration) Snapshot {
			return with(plain(), install(d+m), boots(d+m, d, hardware.PhaseKernel))
		}, BootStuckAfter, hardware.IssueBootStuck, hardware.SeverityError},
		{"lost", func(d time.Duration) Snapshot {
			return with(plain(), install(60*m), boots(50*m, 49*m, hardware.PhaseWorker), runs(49*m), gone(d))
		}, WorkerLostAfter, hardware.IssueWorkerLost, hardware.SeverityWarning},
		{"gone", func(d time.Duration) Snapshot {
			return with(plain(), install(60*m), boots(50*m, 49*m, hardware.PhaseWorker), runs(49*m), gone(d))
		}, WorkerGoneAfter, hardware.IssueWorkerLost, hardware.SeverityError},
		{"overdue", func(d time.Duration) Snapshot { return with(plain(), install(d)) }, 2 * time.Hour, hardware.IssueOverdue, hardware.SeverityError},
	} {
		has := func(d time.Duration) bool {
			for _, i := range Issues(tt.s(d)) {
				if i.Kind == tt.kind && i.Severity == tt.severity {
					return true
				}
			}
			return false
		}
		if has(tt.limit-time.Second) || !has(tt.limit) {
			t.Errorf("%s: %v before, %v at the deadline", tt.name, has(tt.limit-time.Second), has(tt.limit))
		}
	}
}

// checkIssues says which property of Issues does not hold for s.
func checkIssues(s Snapshot) string {
	is := Issues(s)
	seen := map[hardware.IssueKind]bool{}
	for n, i := range is {
		if seen[i.Kind] {
			return fmt.Sprintf("%s is there twice", i.Kind)
		}
		seen[i.Kind] = true
		if n > 0 && rank(is[n-1].Severity) > rank(i.Severity) {
			return "the worst is not first"
		}
		if s.Hardware != nil && s.Hardware.Status.Maintenance && i.Severity != hardware.SeverityInfo {
			return fmt.Sprintf("%s in maintenance", i.Kind)
		}
	}
	if !reflect.DeepEqual(is, Issues(s)) {
		return "it is not deterministic"
	}
	next := NextIssueAt(s)
	if !next.IsZero() && !next.After(s.Now) {
		return "the next moment is past"
	}
	later := s
	if later.Now = s.Now.Add(365 * 24 * time.Hour); !next.IsZero() {
		later.Now = next.Add(-1)
	}
	if !reflect.DeepEqual(is, Issues(later)) {
		return fmt.Sprintf("it changed before %v:\n%v\n%v", next, is, Issues(later))
	}
	return ""
}

func TestIssueProperties(t *testing.T) {
	t.Parallel()
	for _, tt := range situations() {
		if e := checkIssues(tt.s); e != "" {
			t.Errorf("%s: %s", tt.name, e)
		}
	}
}

// A machine that is well costs nothing.
func TestIssuesAreCheap(t *testing.T) { // not parallel: it counts
	well := with(plain(), install(60*time.Minute), boots(50*time.Minute, 49*time.Minute, hardware.PhaseWorker), runs(49*time.Minute))
	for name, s := range map[string]Snapshot{"free": plain(), "provisioned": with(well, ends(time.Minute, StateSucceeded, "", hardware.StateProvisioned))} {
		if n := testing.AllocsPerRun(100, func() { _ = Issues(s) }); n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// random makes a snapshot that has little sense.
func random(r *rand.Rand) Snapshot {
	all := situations()
	pick := func() Snapshot { return all[r.IntN(len(all))].s }
	s := pick()
	if r.IntN(3) == 0 {
		s.Boot = pick().Boot
	}
	if r.IntN(3) == 0 {
		s.Workflow = pick().Workflow
	}
	if r.IntN(3) == 0 {
		s.Subnets = pick().Subnets
	}
	if r.IntN(3) == 0 {
		s.Events = pick().Events
	}
	h := *pick().Hardware
	h.Spec = pick().Hardware.Spec
	st := &h.Status
	if r.IntN(2) == 0 {
		st.State = hardware.States()[r.IntN(len(hardware.States()))]
	}
	st.Hold, st.Maintenance, st.AwaitOS = r.IntN(5) == 0, r.IntN(6) == 0, r.IntN(5) == 0
	st.Failures = r.IntN(5)
	if r.IntN(4) == 0 {
		st.Power = pick().Hardware.Status.Power
	}
	s.Hardware = &h
	s.WorkerConnected = r.IntN(2) == 0
	for _, at := range []*time.Time{&s.Now, &s.WorkerLeft, &st.Since, &st.Deadline} {
		switch r.IntN(4) {
		case 0:
			*at = t0.Add(time.Duration(r.Int64N(int64(4*time.Hour))) - 2*time.Hour)
		case 1:
			if at != &s.Now {
				*at = time.Time{}
			}
		}
	}
	return s
}

// FuzzExplain: whatever is known, Issues keeps its promises and Explain has an answer.
// The bytes are a snapshot as JSON, or else the seed of a random one.
func FuzzExplain(f *testing.F) {
	n := 0
	for _, tt := range situations() {
		raw, err := json.Marshal(tt.s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		n++
	}
	for i := range 200 {
		f.Add(fmt.Appendf(nil, "seed %d", i))
		n++
	}
	if n < 250 {
		f.Fatalf("%d seeds only", n)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Snapshot
		if json.Unmarshal(raw, &s) != nil {
			var a, b uint64
			for i, c := range raw {
				a, b = a*31+uint64(c), b*17+uint64(i)*uint64(c)
			}
			s = random(rand.New(rand.NewPCG(a, b)))
		}
		e := Explain(s)
		if strings.TrimSpace(e.Summary) == "" || len(e.Lines) == 0 || e.State == "" {
			t.Errorf("no answer: %+v", e)
		}
		if bad := checkIssues(s); bad != "" {
			t.Error(bad)
		}
	})
}
