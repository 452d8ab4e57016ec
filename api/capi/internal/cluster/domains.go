package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// maxDomains is how many failure domains a cluster can have (the contract's rules for
// an InfraCluster).
const maxDomains = 100

// domains are the failure domains of a cluster, and what there is to say of them.
type domains struct {
	list    []clusterv1.FailureDomain
	bad     bool
	reason  string
	message string
}

// divide makes the failure domains of the Hardware: one for each value of the label.
func divide(spec *infrav1.FailureDomains, hw []hardware.Hardware) domains {
	label := spec.Label
	if label == "" {
		label = hardware.DefaultFailureDomain
	}
	have := map[string]bool{}
	for i := range hw {
		if v := domainOf(&hw[i], label); v != "" {
			have[v] = true
		}
	}
	names := slices.Sorted(maps.Keys(have))
	d := domains{reason: infrav1.FailureDomainsKnownReason}
	var missing []string
	for _, n := range spec.ControlPlane {
		if !have[n] {
			missing = append(missing, n)
		}
	}
	slices.Sort(missing)
	switch {
	case len(spec.ControlPlane) > 0 && len(missing) == len(spec.ControlPlane):
		d.bad, d.reason = true, infrav1.NoFailureDomainsReason
		d.message = fmt.Sprintf("spec.failureDomains.controlPlane lists %s, and no Hardware that the token sees has label %s with such a value; there are: %s", strings.Join(missing, ", "), label, joined(names))
	case len(names) == 0:
		d.reason = infrav1.NoFailureDomainsReason
		d.message = fmt.Sprintf("no Hardware that the token sees has the label %s, so machines go anywhere; to divide it: rackstrap hardware label NAME %s=VALUE", label, label)
	case len(missing) > 0:
		d.message = fmt.Sprintf("no Hardware that the token sees is in %s, which spec.failureDomains.controlPlane lists", strings.Join(missing, ", "))
	case len(names) > maxDomains:
		d.message = fmt.Sprintf("label %s has %d values; the first %d are failure domains, in the order of their names", label, len(names), maxDomains)
	}
	for _, n := range names[:min(len(names), maxDomains)] {
		cp := len(spec.ControlPlane) == 0 || slices.Contains(spec.ControlPlane, n)
		d.list = append(d.list, clusterv1.FailureDomain{Name: n, ControlPlane: ptr.To(cp)})
	}
	return d
}

// domainOf is the failure domain that a Hardware is in, as claims see it; empty for
// none, and for Hardware that no claim can have.
func domainOf(h *hardware.Hardware, label string) string {
	if s := h.Status.State; s == hardware.StatePending || s == hardware.StateRetired {
		return ""
	}
	v, ok := h.Meta.Labels[label]
	if !ok && label == hardware.DefaultFailureDomain {
		v = h.Spec.Rack
	}
	return v
}

func joined(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names[:min(len(names), maxDomains)], ", ")
}

// tell writes the condition; where failure domains are disabled there is none.
func (d domains) tell(obj *infrav1.RackstrapCluster) {
	if d.reason == "" {
		contract.Unset(obj, infrav1.FailureDomainsKnownCondition)
		return
	}
	status := metav1.ConditionTrue
	if d.bad {
		status = metav1.ConditionFalse
	}
	contract.Set(obj, infrav1.FailureDomainsKnownCondition, status, d.reason, d.message)
}
