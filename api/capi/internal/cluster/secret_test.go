package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// A Secret is kept for a cluster that stays, and for claims; two clusters that go at the
// same time do not leave it to each other, which would keep it, and its namespace, for ever.
func TestSecretOfClustersThatGo(t *testing.T) {
	t.Parallel()
	named := func(uid, uses, kept string, goes bool) infrav1.RackstrapCluster {
		c := infrav1.RackstrapCluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Annotations: map[string]string{keptAnnotation: kept}}}
		c.Spec.Appliance.SecretRef.Name = uses
		if goes {
			c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return c
	}
	for _, tc := range []struct {
		what  string
		other infrav1.RackstrapCluster
		want  bool
	}{
		{"itself", named("a", "s", "s", false), false},
		{"uses it", named("b", "s", "", false), true},
		{"had it", named("b", "t", "s,t", false), true},
		{"another one", named("b", "t", "t", false), false},
		{"goes too", named("b", "s", "s", true), false},
	} {
		me := named("a", "s", "s", true)
		if got := keptBesides(&me, "s", []infrav1.RackstrapCluster{me, tc.other}); got != tc.want {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
	m := infrav1.RackstrapMachine{}
	m.Spec.Appliance.SecretRef.Name = "s"
	if claimed("s", []infrav1.RackstrapMachine{m}) {
		t.Error("a machine without a claim keeps the Secret")
	}
	if m.Spec.ClaimID = "id"; !claimed("s", []infrav1.RackstrapMachine{m}) || claimed("t", []infrav1.RackstrapMachine{m}) {
		t.Error("a claim keeps its Secret, and no other")
	}
}
