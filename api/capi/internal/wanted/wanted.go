// Package wanted turns what an object asks of a Hardware into the appliance's words.
package wanted

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// Spec is the claim for owner that follows from the object's own fields: not where the
// Machine is to stand, nor what stands beside it.
func Spec(c *infrav1.HardwareClaim, owner string) hardware.ClaimSpec {
	out := hardware.ClaimSpec{Owner: owner, Hardware: c.HardwareName, Selector: selector(c.HardwareSelector), Requirements: requirements(&c.Requirements)}
	for i := range c.Preferred {
		p := &c.Preferred[i]
		out.Prefer = append(out.Prefer, hardware.Preference{Selector: selector(&p.HardwareSelector), Weight: int(p.Weight)})
	}
	return out
}

// selector is a Kubernetes selector as the appliance reads one.
func selector(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	var terms []string
	for k, v := range s.MatchLabels {
		terms = append(terms, k+"="+v)
	}
	slices.Sort(terms)
	for _, e := range s.MatchExpressions {
		values := strings.Join(slices.Sorted(slices.Values(e.Values)), ",")
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			terms = append(terms, e.Key+" in ("+values+")")
		case metav1.LabelSelectorOpNotIn:
			terms = append(terms, e.Key+" notin ("+values+")")
		case metav1.LabelSelectorOpExists:
			terms = append(terms, e.Key)
		case metav1.LabelSelectorOpDoesNotExist:
			terms = append(terms, "!"+e.Key)
		default: // what the appliance does not know it refuses
			terms = append(terms, e.Key+" "+string(e.Operator)+" ("+values+")")
		}
	}
	return strings.Join(terms, ",")
}

func requirements(r *infrav1.Requirements) hardware.Requirements {
	out := hardware.Requirements{Arch: r.Architecture, CPUs: int(r.CPUs), Memory: quantity(r.Memory)}
	for _, d := range r.Disks {
		out.Disks = append(out.Disks, hardware.DiskRequirement{Count: int(d.Count), Size: quantity(d.Size), Transport: d.Transport, Rotational: d.Rotational})
	}
	for _, n := range r.NICs {
		out.NICs = append(out.NICs, hardware.NICRequirement{Count: int(n.Count), Mbps: int(n.Mbps)})
	}
	return out
}

// quantity is q as the appliance reads one: as it was written, or, where only
// Kubernetes knows the form (1e9), as a number of bytes.
func quantity(q *resource.Quantity) hardware.Quantity {
	if q == nil {
		return ""
	}
	written := hardware.Quantity(q.String())
	if n, err := written.Bytes(); err == nil && n == q.Value() {
		return written
	}
	return hardware.Quantity(strconv.FormatInt(q.Value(), 10))
}
