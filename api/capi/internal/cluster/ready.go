package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// summary is what Ready says.
type summary struct {
	status          metav1.ConditionStatus
	reason, message string
}

// sum is Ready: the first thing that is wrong. owner may not be nil.
func sum(obj *infrav1.RackstrapCluster, owner *clusterv1.Cluster) summary {
	for _, kind := range []string{infrav1.ApplianceReachableCondition, infrav1.FailureDomainsKnownCondition} {
		if c := meta.FindStatusCondition(obj.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return summary{c.Status, c.Reason, c.Message}
		}
	}
	if !obj.Spec.ControlPlaneEndpoint.Valid() && !owner.Spec.ControlPlaneEndpoint.IsValid() {
		return summary{
			metav1.ConditionFalse, infrav1.WaitingForEndpointReason,
			fmt.Sprintf("set spec.controlPlaneEndpoint, host and port, here or in the Cluster %s: the address at which its API server will be", owner.Name),
		}
	}
	return summary{metav1.ConditionTrue, clusterv1.ReadyReason, ""}
}

// notice is how long before its end a token is spoken of.
const notice = 14 * 24 * time.Hour

// ends says that a token ends soon; empty where it does not.
func ends(who *api.WhoAmI, app *appliance.Appliance, now time.Time) string {
	if who.Expires.IsZero() || who.Expires.Sub(now) > notice {
		return ""
	}
	return fmt.Sprintf("the token in the Secret %s ends on %s (make another, and put it there: rackstrap token create NAME --role claimer --owner-prefix %s)", app.Secret, who.Expires.UTC().Format(time.DateOnly), app.OwnerPrefix)
}

// unfit says why a token cannot serve the clusters of a Secret; empty where it can.
func unfit(who *api.WhoAmI, app *appliance.Appliance) string {
	create := fmt.Sprintf("rackstrap token create NAME --role claimer --owner-prefix %s", app.OwnerPrefix)
	switch {
	case who.Role == hardware.RoleClaimer && !hardware.OwnerHas(who.OwnerPrefix, app.Owner("namespace", "cluster", "machine")):
		return fmt.Sprintf(
			"the Secret %s says ownerPrefix %s, and its token claims for owners within %s (set ownerPrefix to %[3]s, or make another token: %[4]s)",
			app.Secret, app.OwnerPrefix, who.OwnerPrefix, create,
		)
	case who.Role != hardware.RoleClaimer && !who.Role.Includes(hardware.RoleOperator):
		return fmt.Sprintf("the token in the Secret %s has the role %s, which claims nothing (make another token: %s)", app.Secret, who.Role, create)
	}
	return ""
}
