package machine

import (
	"context"
	"slices"
	"sync"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rackstrap "github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// spreading lets claims that look at each other's machines be made one after the other.
// Those of an appliance that does not answer keep nobody waiting who asks another.
type spreading struct {
	mu  sync.Mutex
	one map[client.ObjectKey]chan struct{} // by the appliance's Secret; full while one has its turn
}

// turn waits for ours among the claims of an appliance; done ends it.
func (s *spreading) turn(ctx context.Context, secret client.ObjectKey) (done func(), err error) {
	s.mu.Lock()
	if s.one == nil {
		s.one = map[client.ObjectKey]chan struct{}{}
	}
	one := s.one[secret]
	if one == nil {
		one = make(chan struct{}, 1)
		s.one[secret] = one
	}
	s.mu.Unlock()
	select {
	case one <- struct{}{}:
		return func() { <-one }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known is how old the labels may be that machines are kept apart by: whoever asks for
// each machine of the group asks the square of them all while a group grows.
const known = 5 * time.Minute

// beside counts the machines of the same group by their value of the label of
// spec.spread. done is called when the claim was made.
func (w *work) beside(ctx, asking context.Context) (count map[string]int, done func(), err error) {
	label, group := w.object.Spec.Spread.Label, groupOf(w.machine.Labels)
	if label == "" || group == "" {
		return nil, func() {}, nil
	}
	var list clusterv1.MachineList
	if err := w.List(ctx, &list, client.InNamespace(w.object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: w.cluster.Name}); err != nil {
		return nil, nil, err
	}
	owners := map[string]bool{}
	for i := range list.Items {
		if m := &list.Items[i]; groupOf(m.Labels) == group {
			owners[w.app.Owner(m.Namespace, w.cluster.Name, m.Name)] = true
		}
	}
	end, err := w.turn(asking, w.app.Secret)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	active := true
	claims, err := w.app.ListClaims(asking, rackstrap.ClaimFilter{Owner: w.app.OwnerPrefix + w.object.Namespace + "/" + w.cluster.Name, Active: &active})
	if err != nil {
		return nil, nil, err
	}
	claims = slices.DeleteFunc(claims, func(c hardware.Claim) bool { return !owners[c.Spec.Owner] })
	if len(claims) == 0 {
		return nil, end, nil
	}
	all, err := w.Inventory.Hardware(asking, w.app, known)
	if err != nil {
		return nil, nil, err
	}
	return besides(claims, all, label), end, nil
}

// besides counts claims by their machines' value of a label. A machine that all has no
// record of, being newer, counts for nothing: it is a matter of preference only.
func besides(claims []hardware.Claim, all []hardware.Hardware, label string) map[string]int {
	value := map[string]string{}
	for i := range all {
		value[all[i].Meta.UID] = labelOf(&all[i], label)
	}
	count := map[string]int{}
	for i := range claims {
		if v, ok := value[claims[i].Status.UID]; ok {
			count[v]++
		}
	}
	return count
}
