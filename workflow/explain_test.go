package workflow

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

var update = flag.Bool("update", false, "write the golden files (the test still fails)")

// golden compares got with the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("%s was written; look at the difference and run again", file)
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s differs at line %d:\n got %s\nwant %s\n(run with -update)", file, i+1, g[i], append(w, make([]string, len(g))...)[i])
		}
	}
	t.Fatalf("%s has %d lines, got %d (run with -update)", file, len(w), len(g))
}

func told(e Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", e.Summary)
	for _, l := range e.Lines {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	for _, d := range e.Do {
		fmt.Fprintf(&b, "$ %s\n", d)
	}
	return b.String()
}

// TestExplainGolden shows every answer as people read it.
func TestExplainGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, tt := range situations() {
		fmt.Fprintf(&b, "-- %s --\n%s", tt.name, told(Explain(tt.s)))
	}
	golden(t, "testdata/explain.txtar", b.String())
}

// complete says what an explanation lacks.
func complete(e Explanation) string {
	switch {
	case strings.TrimSpace(e.Summary) == "" || e.State == "" || len(e.Lines) < 3 || e.Next.Reason == "":
		return "it is empty"
	case strings.Contains(e.Summary, "%!") || strings.Contains(strings.Join(e.Lines, ""), "%!"):
		return "a sentence is broken"
	case strings.Contains(e.Summary, "\n"):
		return "the summary is no one sentence"
	}
	for _, i := range e.Issues {
		if i.Detail == "" || i.Fix == "" || i.Severity == "" || i.Kind.Title() == string(i.Kind) {
			return fmt.Sprintf("the issue %s is empty", i.Kind)
		}
	}
	return ""
}

// Every state has an answer, with every boot and every workflow.
func TestExplainEverything(t *testing.T) {
	t.Parallel()
	n := 0
	for _, state := range append(hardware.States(), "") {
		for _, ws := range []State{"", StatePending, StateRunning, StateSucceeded, StateFailed, StateTimedOut, StateCancelled} {
			for p := hardware.Phase(-1); p <= hardware.PhaseWorker; p++ {
				for _, bits := range []int{0, 1, 2, 3} {
					s := plain()
					if ws != "" {
						install(10 * time.Minute)(&s)
						s.Workflow.Status.State = ws
					}
					if p >= 0 {
						boots(8*time.Minute, 6*time.Minute, p)(&s)
						s.Boot.Closed = bits&1 != 0
					}
					s.WorkerConnected = bits&2 != 0
					s.Hardware.Status.State = state
					if lack := complete(Explain(s)); lack != "" {
						t.Errorf("state %q, workflow %q, phase %d, %d: %s: %s", state, ws, p, bits, lack, told(Explain(s)))
					}
					n++
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d cases only", n)
	}
}

// Whatever was seen last is told; what ends a boot is the answer itself, with a fix of
// its own.
func TestEveryReason(t *testing.T) {
	t.Parallel()
	for r := range endings() {
		if !r.Known() {
			t.Errorf("endings() has %q, which is no Reason", r)
		}
	}
	for r := range strings.FieldsSeq(`malformed unknown-machine no-subnet subnet-off nic-off no-reservation other-server no-server-address
		two-server-addresses declined store-failed unknown-firmware boot-program-loop no-boot-assets boot-program-failed file-not-found
		no-boot-program own-script-needs-ipxe pool-empty pool-share-used address-in-use other-dhcp-server boot-loop
		script-without-token worker-too-old token-unknown token-expired token-other-key`) {
		if _, ok := endings()[hardware.Reason(r)]; !ok {
			t.Errorf("endings() does not say what to do about %s", r)
		}
	}
	fixes := map[string]hardware.Reason{}
	for _, r := range hardware.Reasons() {
		a, ends := endings()[r]
		if other, twice := fixes[a.fix]; ends && (twice || a.fix == "") {
			t.Errorf("%s: its fix is empty or that of %s", r, other)
		}
		fixes[a.fix] = r
		for _, boot := range []string{"", "01B"} {
			s := with(plain(), install(10*time.Minute))
			if boot != "" {
				boots(time.Minute, time.Minute, hardware.PhaseAddress)(&s)
			}
			saw(boot, r, "detail-7", 30*time.Second)(&s)
			e := Explain(s)
			switch words := r.Sentence() + ": detail-7"; {
			case strings.Contains(strings.Join(e.Lines, "\n"), "seen: "+words) == clerical(r):
				t.Errorf("%s in boot %q is not told: %s", r, boot, told(e))
			case ends && (!strings.Contains(e.Summary, words) || e.Lines[0] != "what to do: "+a.fix || len(e.Do) == 0):
				t.Errorf("%s in boot %q is not the answer: %s", r, boot, told(e))
			}
		}
	}
}

// What came after a bad end of a boot makes up for it.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	at := func(r hardware.Reason, s int) func(*Snapshot) { return saw("01B", r, "", time.Duration(s)*time.Second) }
	for _, tt := range []struct {
		name   string
		events []func(*Snapshot)
		want   hardware.Reason
	}{
		{"nothing", nil, ""},
		{"one", []func(*Snapshot){at(hardware.ReasonProgramFailed, 9)}, hardware.ReasonProgramFailed},
		{"made up for", []func(*Snapshot){at(hardware.ReasonProgramFailed, 9), at(hardware.ReasonProgramSent, 8)}, ""},
		{"the newest", []func(*Snapshot){at(hardware.ReasonOtherServer, 9), at(hardware.ReasonProgramFailed, 8)}, hardware.ReasonProgramFailed},
		{"not a weak one", []func(*Snapshot){at(hardware.ReasonScriptNoToken, 9), at(hardware.ReasonFileNotFound, 8)}, hardware.ReasonScriptNoToken},
		{"a weak one alone", []func(*Snapshot){at(hardware.ReasonProgramSent, 9), at(hardware.ReasonFileNotFound, 8)}, hardware.ReasonFileNotFound},
		{"in the order in which they came", []func(*Snapshot){at(hardware.ReasonProgramSent, 8), at(hardware.ReasonProgramFailed, 9)}, ""},
		{"of the boot before", []func(*Snapshot){saw("01A", hardware.ReasonProgramFailed, "", time.Second)}, ""},
		{"of none, before the boot", []func(*Snapshot){saw("", hardware.ReasonNoSubnet, "", time.Hour)}, ""},
		{"of none, since", []func(*Snapshot){saw("", hardware.ReasonNoSubnet, "", time.Second)}, hardware.ReasonNoSubnet},
	} {
		s := with(plain(), append([]func(*Snapshot){install(10 * time.Minute), boots(time.Minute, time.Minute, hardware.PhaseAddress)}, tt.events...)...)
		d, ok := s.diagnose()
		if ok != (tt.want != "") || d.event.Reason != tt.want && ok {
			t.Errorf("%s: got %v %q", tt.name, ok, d.event.Reason)
		}
	}
}
