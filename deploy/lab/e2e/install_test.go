package e2e_test

import (
	"context"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

// finished waits for the end of the machine's workflow and for its system.
func finished(ctx context.Context, t *testing.T, r *rig.Rack, m *lab.Machine, n int) *rig.SSH {
	t.Helper()
	if _, err := r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkflowSucceeded, ""); err != nil {
		t.Fatal(err)
	}
	s, err := r.Check(ctx, m.Name(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
