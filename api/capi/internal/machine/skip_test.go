package machine_test

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// skipped waits for the event that names what a deletion did not wait for.
func (l *live) skipped(name string, says ...string) {
	l.Helper()
	l.Eventually("an event names what was skipped of "+name, func() error {
		var events eventsv1.EventList
		if err := l.Client.List(l.Context(), &events, ctrlclient.InNamespace("default")); err != nil {
			return err
		}
		var seen []string
	events:
		for _, e := range events.Items {
			if e.Regarding.Name != name || e.Reason != "Skipped" || e.Type != "Warning" {
				continue
			}
			seen = append(seen, e.Note)
			for _, s := range says {
				if !strings.Contains(e.Note, s) {
					continue events
				}
			}
			return nil
		}
		return fmt.Errorf("want %q in %q", says, seen)
	})
}

// A deletion that waits says for what, and ends when the annotation skips it: the proof
// that the machine stopped, where its power controller is silent, and the release, where
// the appliance is. What was skipped is named, and is what is left behind.
func TestSkips(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 2})
	l.machine("w1", nil)
	l.machine("w2", nil)
	first, second := l.ready("w1", clusterv1.ReadyReason), l.ready("w2", clusterv1.ReadyReason)

	hardware := first.Status.Hardware.Name
	l.runs(hardware)
	l.Machine(hardware).SetFaults(func(f *sim.Faults) { f.NoBMC = true })
	l.remove("w1")
	l.says("w1", clusterv1.DeletingReason, "Hardware "+hardware+" is not known to have stopped yet")
	l.Kubectl("annotate", "rackstrapmachine", "w1", infrav1.SkipAnnotation+"="+infrav1.SkipPowerOff)
	l.gone("w1")
	l.skipped("w1", "Hardware "+hardware+" may still run", infrav1.SkipAnnotation)
	if ended := l.claims(false); len(ended) != 1 || ended[0].Meta.Name != first.Spec.ClaimID || ended[0].Status.Stopped != nil {
		t.Errorf("the claim of w1 has not ended unproven: %+v", ended)
	}
	l.Machine(hardware).SetFaults(func(f *sim.Faults) { f.NoBMC = false })

	l.must(l.Appliance.Kill())
	l.remove("w2")
	l.says("w2", clusterv1.DeletingReason, infrav1.SkipAnnotation+"="+infrav1.SkipRelease)
	l.Kubectl("annotate", "rackstrapmachine", "w2", infrav1.SkipAnnotation+"="+infrav1.SkipRelease)
	l.gone("w2")
	l.skipped("w2", "The claim "+second.Spec.ClaimID, "installation "+second.Spec.Installation, "may still run")
	l.must(l.Appliance.Start(t.Context()))
	if held := l.claims(true); len(held) != 1 || held[0].Meta.Name != second.Spec.ClaimID {
		t.Errorf("what was left behind: %+v, want the claim %s", held, second.Spec.ClaimID)
	}
}
