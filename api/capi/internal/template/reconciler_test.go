package template

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// Templates of a ClusterClass are left alone; the Cluster of others is their owner, else
// their label.
func TestOwners(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meta    metav1.ObjectMeta
		class   bool
		cluster string
	}{
		"nobody":        {metav1.ObjectMeta{}, false, ""},
		"a class":       {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "ClusterClass", Name: "x"}}}, true, ""},
		"a cluster":     {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "x"}}}, false, "x"},
		"a label":       {metav1.ObjectMeta{Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "y"}}, false, "y"},
		"another group": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Cluster", Name: "x"}}}, false, ""},
	} {
		o := &infrav1.RackstrapMachineTemplate{ObjectMeta: tc.meta}
		if ofClass(o) != tc.class || clusterOf(o) != tc.cluster {
			t.Errorf("%s: of a class %v, of cluster %q", name, ofClass(o), clusterOf(o))
		}
	}
}
