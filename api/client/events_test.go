package client_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func (d *daemon) create(name string) {
	d.t.Helper()
	_, err := d.c.Workflows.Create(d.t.Context(), &api.Workflow{Workflow: workflow.Workflow{
		Meta: hardware.Meta{Name: name}, Spec: workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "debian"}},
	}})
	d.must(err)
}

func TestWaitSeesProgressAndTheEnd(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	d.create("w1")
	s := d.worker("m1")
	a := d.assigned(s)
	s.Progress(workflow.Progress{Action: 0, Attempt: 1, Done: 5e8, Total: 1e9})
	var percent int64
	steps := 0
	w, err := d.c.WaitWorkflow(t.Context(), "w1", func(w *api.Workflow) {
		if w.Progress != nil && w.Progress.Total > 0 {
			percent = 100 * w.Progress.Done / w.Progress.Total
		}
		// each call moves the worker on, once it has been seen that far
		for steps < 3 && w.Status.Current == steps && !w.Status.State.Ended() && percent > 0 {
			steps++
			d.report(s, a, workflow.StateSucceeded)
			if steps < 3 {
				a = d.assigned(s)
			}
		}
	})
	d.must(err)
	if w.Status.State != workflow.StateSucceeded || percent != 50 {
		t.Errorf("got %s at %d %%", w.Status.State, percent)
	}
	tl, err := d.c.Timeline(t.Context(), "m1")
	d.must(err)
	last := tl.Boots[len(tl.Boots)-1]
	var names []string
	for _, sp := range last.Split {
		names = append(names, sp.Name)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "worker start wipe key restart") {
		t.Errorf("split %s of %+v", got, last.Lines)
	}
}

func TestStreamResumes(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, cursor, err := d.c.ListEvents(ctx, client.Filter{Hardware: "m1"})
	d.must(err)
	retried := make(chan error, 100)
	got := make(chan hardware.Reason, 1000)
	ended := make(chan error, 1)
	go func() {
		defer close(got)
		for m, err := range d.c.Events(ctx, cursor, client.Filter{Hardware: "m1", OnRetry: func(err error) { retried <- err }}) {
			if err != nil {
				ended <- err
				return
			}
			if m.Event != nil {
				got <- m.Event.Reason
			}
		}
	}()
	d.create("w1")
	if r := <-got; r != hardware.ReasonWorkflowCreated {
		t.Errorf("got %s", r)
	}
	d.stop()
	<-retried
	// this happens while nobody is connected
	_, err = d.e.CancelWorkflow(ctx, "w1", "test")
	d.must(err)
	_ = os.Remove(d.socket)
	d.listen(rest.New(rest.Deps{Records: d.db, Engine: d.e, Images: d.images, Logs: d.logs, Now: time.Now, Log: discard()}))
	var seen []hardware.Reason
	for !slices.Contains(seen, hardware.ReasonWorkflowCancelled) {
		select {
		case r := <-got:
			seen = append(seen, r)
		case <-ctx.Done():
			t.Fatalf("seen %v", seen)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestStreamOfNothing(t *testing.T) {
	t.Parallel()
	d := start(t)
	for _, err := range d.c.Events(t.Context(), 0, client.Filter{Hardware: "nobody"}) {
		wantProblem(t, err, 404, api.CodeNotFound, "nobody")
	}
	c := client.New(client.Options{Socket: d.socket + "x"})
	for _, err := range c.Events(t.Context(), 0, client.Filter{}) {
		var u *client.Unreachable
		if !errors.As(err, &u) || !strings.Contains(u.Hint(), "systemctl start rackstrap") || !strings.Contains(u.Error(), "there is no socket") {
			t.Errorf("got %v", err)
		}
	}
}
