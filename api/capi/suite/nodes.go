package suite

import (
	"context"

	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// Nodes are what simulated machines become when they boot what kubeadm's data made of
// them.
type Nodes struct{ s *Suite }

func (n *Nodes) boot(ctx context.Context, m *sim.Machine, s *sim.System) {
	n.s.Logf("%s boots what workflow %s installed", m.Name(), s.Workflow)
	<-ctx.Done()
}

func (n *Nodes) close() {}
