package node

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// choose picks the Node that a machine's system registered without a provider id; nil
// where there is none yet, or where one has the id. trouble says why nobody can know
// which it is: a provider id is never changed again. all are the machines of the
// cluster.
func choose(o *infrav1.RackstrapMachine, nodes []corev1.Node, all []infrav1.RackstrapMachine) (chosen *corev1.Node, trouble string) {
	var fit []*corev1.Node
	for i := range nodes {
		n := &nodes[i]
		if n.Spec.ProviderID == o.Spec.ProviderID {
			return nil, ""
		}
		if n.Spec.ProviderID == "" && !silent(n) && fits(o, n) {
			fit = append(fit, n)
		}
	}
	switch {
	case len(fit) == 0:
		return nil, ""
	case len(fit) > 1:
		names := make([]string, len(fit))
		for i, n := range fit {
			names[i] = n.Name
		}
		slices.Sort(names)
		return nil, fmt.Sprintf("The Nodes %s have no provider id, and each has the name or an address of this machine; delete those that are not its own", strings.Join(names, " and "))
	}
	for i := range all {
		if x := &all[i]; x.UID != o.UID && fits(x, fit[0]) {
			return nil, fmt.Sprintf("The Node %s has no provider id, and the name or an address of this machine and of the RackstrapMachine %s; give each machine its own name and addresses", fit[0].Name, x.Name)
		}
	}
	return fit[0], ""
}

// fits reports whether a Node has the name or an address of a machine.
func fits(o *infrav1.RackstrapMachine, n *corev1.Node) bool {
	for _, a := range o.Status.Addresses {
		switch a.Type {
		case clusterv1.MachineHostName:
			if a.Address == n.Name {
				return true
			}
		case clusterv1.MachineInternalIP:
			if slices.Contains(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.Address}) {
				return true
			}
		}
	}
	return false
}

// silent reports whether the kubelet is not heard of any more: the Node is what another
// system left behind.
func silent(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}
