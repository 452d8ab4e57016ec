package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ got, want string }{
		{size(0), "0 B"},
		{size(999), "999 B"},
		{size(1500), "1.5 kB"},
		{size(2_500_000_000), "2.50 GB"},
		{size(4e12), "4.00 TB"},
		{rate(0, time.Second), ""},
		{rate(5, 0), ""},
		{rate(5e6, time.Second), "5.0 MB/s"},
		{rate(420e6, 2*time.Second), "210 MB/s"},
		{span(0), "0.0 s"},
		{span(59960 * time.Millisecond), "1 min"},
		{span(65 * time.Second), "1 min 5 s"},
		{span(59*time.Minute + 59*time.Second), "59 min 59 s"},
		{span(3*time.Hour + 2*time.Minute), "3 h 2 min"},
		{span(72 * time.Hour), "3 d"},
		{span(-time.Second), "-1.0 s"},
		{ago(time.Time{}, time.Now()), "never"},
		{bar(1, 2, 4), "[==  ]"},
		{bar(9, 2, 4), "[====]"},
		{bar(1, 0, 4), ""},
		{plural(1, "disk"), "1 disk"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestViewInWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	v := newView(&b)
	w := &api.Workflow{}
	w.Meta.Name, w.Spec.Hardware = "w1", "m1"
	w.Status = workflow.Status{State: workflow.StatePending, Message: "waits for the machine to netboot", Actions: []workflow.Action{{Name: "write"}}}
	v.see(w)
	v.see(w) // said once
	w.Status.State, w.Status.Started = workflow.StateRunning, at
	w.Status.Actions[0].Attempts = []workflow.Attempt{{State: workflow.StateRunning, Started: at}}
	for i := range 13 {
		w.Progress = &workflow.Progress{Attempt: 1, Done: int64(i) * 200e6, Total: 4e9, At: at.Add(time.Duration(i) * time.Second)}
		v.see(w)
	}
	w.Progress = nil
	w.Status.Actions[0].Attempts[0] = workflow.Attempt{State: workflow.StateFailed, Started: at, Finished: at.Add(14 * time.Second), Message: "the image was cut short"}
	w.Status.Actions[0].Attempts = append(w.Status.Actions[0].Attempts, workflow.Attempt{
		State: workflow.StateSucceeded, Started: at.Add(15 * time.Second), Finished: at.Add(35 * time.Second), Result: workflow.Result{WrittenBytes: 4e9},
	})
	w.Status.State, w.Status.Finished = workflow.StateSucceeded, at.Add(36*time.Second)
	v.see(w)
	v.end()
	want := strings.TrimLeft(`
m1: waits for the machine to netboot
m1: write (1 of 1) …
m1: write: 50 %, 2.00 GB of 4.00 GB, 200 MB/s, 10.0 s left
m1: write (1 of 1) failed in 14.0 s: the image was cut short
m1: write (1 of 1), attempt 2 done in 20.0 s, 4.00 GB, 200 MB/s
m1: workflow w1 succeeded after 36.0 s
`, "\n")
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
