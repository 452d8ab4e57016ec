package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/internal/wanted"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// claimSpec is what a machine asks the appliance for. owner is Appliance.Owner of the
// machine; group is that of its MachineDeployment or control plane; beside counts the
// machines of the group by their value of the label that spec.spread names.
func claimSpec(v *view, owner, group string, beside map[string]int) hardware.ClaimSpec {
	o := v.object
	out := wanted.Spec(&o.Spec.HardwareClaim, owner)
	if f := v.infra.Spec.FailureDomains; v.machine.Spec.FailureDomain != "" && !ptr.Deref(f.Disabled, false) {
		out.FailureDomain, out.FailureDomainLabel = v.machine.Spec.FailureDomain, f.Label
		out.FailureDomainPreferred = f.Placement == infrav1.PlacementPreferred
	}
	out.Prefer = append(out.Prefer, spread(o.Spec.Spread, beside, hardware.MaxPreferences-len(out.Prefer))...)
	if o.Spec.Reuse.Disks != "" {
		out.Reuse = group
	}
	return out
}

// spread weighs the values that machines of the group have already, in at most room
// preferences: values that cost the same share one.
func spread(s infrav1.Spread, beside map[string]int, room int) []hardware.Preference {
	if s.Label == "" || room <= 0 {
		return nil
	}
	by := map[int][]string{}
	for value, n := range beside {
		if value != "" {
			w := min(n*int(cmp.Or(s.Weight, 10)), hardware.MaxWeight)
			by[w] = append(by[w], value)
		}
	}
	var out []hardware.Preference
	for w, values := range by {
		slices.Sort(values)
		out = append(out, hardware.Preference{Selector: s.Label + " in (" + strings.Join(values, ",") + ")", Weight: -w})
	}
	slices.SortFunc(out, func(a, b hardware.Preference) int { return cmp.Compare(a.Weight, b.Weight) })
	return out[:min(len(out), room)]
}

// groupOf names the MachineDeployment, control plane or MachineSet that a Machine is of;
// empty where it is alone.
func groupOf(labels map[string]string) string {
	for _, k := range []string{clusterv1.MachineDeploymentNameLabel, clusterv1.MachineControlPlaneNameLabel, clusterv1.MachineSetNameLabel} {
		if v := labels[k]; v != "" {
			return v
		}
	}
	return ""
}

// reserve keeps the Hardware of a machine that goes for the next one of its group; nil
// where nobody asked for it, or where there is no group.
func reserve(o *infrav1.RackstrapMachine, group string) *hardware.Reserve {
	r := o.Spec.Reuse
	if r.Disks == "" || group == "" {
		return nil
	}
	return &hardware.Reserve{For: group, KeepDisks: r.Disks == infrav1.ReuseKeep, Within: hardware.Duration(time.Duration(r.Seconds) * time.Second)}
}

// workflowName is that of the install under a claim: asked for again it is the same.
func workflowName(claim string) string { return fmt.Sprintf("capi-%.58s", claim) }
