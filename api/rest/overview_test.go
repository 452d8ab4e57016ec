package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// installed writes an install of a machine that ended, with its boot in the event log.
func (g *rig) installed(machine, name string, asked time.Time, took time.Duration, state workflow.State) {
	g.t.Helper()
	ctx := g.t.Context()
	h, err := g.db.HardwareByName(ctx, machine)
	g.must(err)
	boot, write := workflow.NewID(asked), asked.Add(took/2)
	w := &workflow.Workflow{
		Meta: hardware.Meta{Name: name, Created: asked}, Spec: workflow.WorkflowSpec{Hardware: machine, Template: "write"},
		Status: workflow.Status{State: state, HardwareUID: h.Meta.UID, Started: write, Finished: asked.Add(took), Actions: []workflow.Action{{
			Name: "image", Kind: workflow.KindImageWrite, State: state,
			Attempts: []workflow.Attempt{{Boot: boot, State: state, Started: write, Finished: write.Add(10 * time.Second), Result: workflow.Result{WrittenBytes: 1e9}}},
		}}},
	}
	ev := func(after time.Duration, r hardware.Reason, action string) workflow.Event {
		return workflow.Event{Hardware: h.Meta.UID, Machine: machine, Boot: boot, Reason: r, Action: action, First: asked.Add(after), Last: asked.Add(after), Workflow: name}
	}
	g.must(g.db.Commit(ctx, &workflow.Change{Workflow: w, Events: []workflow.Event{
		ev(0, hardware.ReasonBootStarted, ""), ev(2*time.Second, hardware.ReasonAcked, ""), ev(took/2-time.Second, hardware.ReasonWorkerConnected, ""),
		ev(took/2, hardware.ReasonActionStarted, "image"), ev(took/2+10*time.Second, hardware.ReasonActionSucceeded, "image"), ev(took, hardware.ReasonWorkflowSucceeded, ""),
	}}))
}

func TestOverview(t *testing.T) {
	t.Parallel()
	g := held(t)
	g.machine(3, "free", "team=a")
	ctx := t.Context()
	for i, m := range []string{"free", "theirs"} {
		h, err := g.db.HardwareByName(ctx, m)
		g.must(err)
		mc, err := g.db.Machine(ctx, h.Meta.UID)
		g.must(err)
		mc.Status.Hold, mc.Status.Maintenance = true, i == 0
		mc.Status.Issues = []hardware.Issue{{Kind: hardware.IssueHeld, Severity: hardware.SeverityInfo, Since: g.now().Add(-time.Duration(i+1) * time.Hour), Fix: "unhold " + m}}
		if i == 0 {
			mc.Status.Issues = append(mc.Status.Issues, hardware.Issue{Kind: hardware.IssueBootStuck, Severity: hardware.SeverityError, Since: g.now(), Fix: "look"})
		}
		g.must(g.db.Commit(ctx, &workflow.Change{Machine: mc}))
	}
	day := g.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	for i := range 20 {
		g.installed("free", fmt.Sprintf("good-%d", i), day.Add(time.Duration(i)*time.Minute), time.Duration(i+1)*time.Minute, workflow.StateSucceeded)
	}
	g.installed("free", "bad", day, time.Minute, workflow.StateFailed)
	g.installed("free", "late", day, time.Minute, workflow.StateTimedOut)
	g.installed("free", "gone", day, time.Minute, workflow.StateCancelled)
	eye := g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	mine := g.token("c", hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"})
	ask := func(token, query string) api.Overview {
		t.Helper()
		status, text := g.ask(g.url, "GET", api.Base+"/overview"+query, token, "")
		var out api.Overview
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return out
	}
	o := ask(eye, "")
	if o.Machines != 3 || o.Hold != 2 || o.Maintenance != 1 || o.Claimed != 2 || o.States[hardware.StateAvailable] != 3 || o.Cursor == 0 || o.Partial {
		t.Errorf("%+v", o)
	}
	var issues []string
	for _, i := range o.Issues {
		issues = append(issues, fmt.Sprint(i.Kind, " ", i.Severity, " ", i.Count, " ", i.Hardware, " ", i.Fix))
	}
	if got := strings.Join(issues, "; "); got != "boot-stuck error 1 free look; on-hold info 2 theirs unhold theirs" {
		t.Errorf("issues: %s", got)
	}
	if len(o.Days) != 1 {
		t.Fatalf("days: %+v", o.Days)
	}
	d := o.Days[0]
	if d.Day != day.Format(time.DateOnly) || d.Succeeded != 20 || d.Failed != 2 || time.Duration(d.P50) != 10*time.Minute || time.Duration(d.P95) != 19*time.Minute ||
		d.Sampled != 20 || d.Bytes != 20e9 || d.BytesPerSecond != 1e8 {
		t.Errorf("day: %+v", d)
	}
	var parts []string
	for _, p := range d.Parts {
		parts = append(parts, fmt.Sprint(p.Name, " ", time.Duration(p.Mean)))
	}
	// the worker comes after half of (i+1) minutes, less a second and the two of the address
	if got := strings.Join(parts, ", "); got != "address 2s, worker start 5m12s, image 10s" {
		t.Errorf("parts: %s", got)
	}
	if o := ask(eye, "?days=2"); len(o.Days) != 0 {
		t.Errorf("two days: %+v", o.Days)
	}
	// what ends from now on is in it, at the latest ten seconds later
	g.installed("free", "new", g.now().Add(-time.Minute), time.Minute, workflow.StateSucceeded)
	g.pass(10 * time.Second)
	if o := ask(eye, "?days=2"); len(o.Days) != 1 || o.Days[0].Succeeded != 1 {
		t.Errorf("after another: %+v", o.Days)
	}
	// a claimer counts what it sees, and follows
	if o := ask(mine, ""); o.Machines != 2 || o.Hold != 1 || len(o.Issues) != 2 || o.Issues[1].Count != 1 || len(o.Days) != 0 {
		t.Errorf("a claimer: %+v", o)
	}
	if status, _ := g.ask(g.url, "GET", api.Base+"/overview?days=91", eye, ""); status != http.StatusBadRequest {
		t.Errorf("91 days: %d", status)
	}
}

// impatient are records whose reader leaves after so many lists of events.
type impatient struct {
	rest.Records
	reads, most atomic.Int64
}

func (r *impatient) Events(ctx context.Context, q workflow.EventQuery) ([]workflow.Event, error) {
	if r.reads.Add(1) > r.most.Load() {
		return nil, context.Canceled
	}
	return r.Records.Events(ctx, q)
}

// What was read of the past for somebody who left before the end is not read again.
func TestOverviewGoesOn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "team=a")
	day := g.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	for i := range 10 {
		g.installed("m1", fmt.Sprintf("i%d", i), day.Add(time.Duration(i)*time.Minute), time.Minute, workflow.StateSucceeded)
	}
	records := &impatient{Records: g.deps.Records}
	g.deps.Records = records
	h := rest.New(g.deps)
	ask := func(most int64) int {
		records.reads.Store(0)
		records.most.Store(most)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", api.Base+"/overview", nil))
		return w.Code
	}
	if code := ask(6); code == http.StatusOK {
		t.Error("what was not read is told of")
	}
	if code := ask(100); code != http.StatusOK || records.reads.Load() != 4 {
		t.Errorf("%d after %d more reads, want 4", code, records.reads.Load())
	}
}
