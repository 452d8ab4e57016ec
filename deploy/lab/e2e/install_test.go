package e2e_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// finished waits for the end of the machine's workflow and for its system.
func finished(ctx context.Context, t *testing.T, r *rig.Rack, m *lab.Machine, n int) *rig.SSH {
	t.Helper()
	if _, err := r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkflowSucceeded, ""); err != nil {
		t.Fatal(err)
	}
	logged(ctx, t, r.Appliance.Client, m.Name())
	s, err := r.Check(ctx, m.Name(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// logged checks that the log of the image that was written tells of it.
func logged(ctx context.Context, t *testing.T, c *client.Client, machine string) {
	t.Helper()
	h, err := c.Hardware.Get(ctx, machine)
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Workflows.Get(ctx, h.Status.Workflow)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range w.Status.Actions {
		if a.Kind != workflow.KindImageWrite {
			continue
		}
		log, err := c.AttemptLog(ctx, w.Meta.Name, i, len(a.Attempts), client.LogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(log)
		_ = log.Close()
		for _, want := range []string{"image written, flushed and read back", "attempt ended"} {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: %q is not in its log: %v\n%s", a.Name, want, err, text)
			}
		}
	}
}
