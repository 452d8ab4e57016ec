package suite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	clientapi "github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
)

// The example of two teams on one appliance, as it is shipped: each gets a cluster of its
// own machines, and waits for one of them though the other's are free.
func TestTenants(t *testing.T) {
	t.Parallel()
	of := func(tenant string) sim.Spec {
		return sim.Spec{Rack: tenant + "-rack", Labels: map[string]string{"tenant": tenant}}
	}
	s := suite.New(t, suite.Options{CAPI: true, Specs: []sim.Spec{of("blue"), of("red"), of("blue"), of("red"), of("blue"), {Rack: "of-nobody"}}})
	s.Apply(s.Shipped("examples/tenants.yaml"))
	says := func(team, kind, reason, text string) *infrav1.RackstrapCluster {
		c := new(infrav1.RackstrapCluster)
		s.Eventually(fmt.Sprintf("%s of %s is %s", kind, team, reason), func() error {
			if err := s.Get("team-"+team, team, c); err != nil {
				return err
			}
			if have := meta.FindStatusCondition(c.Status.Conditions, kind); have == nil || have.Reason != reason || !strings.Contains(have.Message, text) {
				return fmt.Errorf("conditions %+v", c.Status.Conditions)
			}
			return nil
		})
		return c
	}
	teams := []string{"red", "blue"}
	for _, team := range teams {
		says(team, clusterv1.ReadyCondition, infrav1.ApplianceSecretMissingReason, "team-"+team+"/rackstrap")
		tenantSecret(s, team)
	}
	for _, team := range teams {
		s.Eventually("the machines of "+team+" run", func() error {
			return s.Running(suite.Cluster{Name: team, Namespace: "team-" + team, ControlPlane: 1, Workers: 1, Version: suite.KubernetesVersion})
		})
		c := says(team, clusterv1.ReadyCondition, clusterv1.ReadyReason, "")
		if got := names(c.Status.FailureDomains, false); got != team+"-rack" {
			t.Errorf("%s sees the racks %s", team, got)
		}
	}

	s.Kubectl("-n", "team-red", "scale", "machinedeployment", "red-md-0", "--replicas=2")
	s.Eventually("red waits for a machine of its own", func() error {
		var list infrav1.RackstrapMachineList
		if err := s.Client.List(t.Context(), &list, client.InNamespace("team-red")); err != nil {
			return err
		}
		for _, m := range list.Items {
			if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition); c != nil && c.Reason == infrav1.NoHardwareFitsReason {
				if strings.Contains(c.Message, "blue") {
					t.Errorf("red is told of blue: %s", c.Message)
				}
				return nil
			}
		}
		return errors.New("no machine does")
	})
	checkTenants(s)
	s.AddMachine(of("red"))
	s.Eventually("red has it", func() error {
		return s.Running(suite.Cluster{Name: "red", Namespace: "team-red", ControlPlane: 1, Workers: 2, Version: suite.KubernetesVersion})
	})
	checkTenants(s)
}

// tenantSecret does what the example says to do for a team.
func tenantSecret(s *suite.Suite, team string) {
	s.Helper()
	prefix := "capi/" + team + "/"
	token, err := s.API.CreateToken(s.Context(), team, api.NewTokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: prefix, Selector: "tenant=" + team})
	if err != nil {
		s.Fatal(err)
	}
	data := s.Connection()
	data["token"], data["ownerPrefix"] = token.Secret, prefix
	b, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "rackstrap", "namespace": "team-" + team}, "stringData": data})
	if err != nil {
		s.Fatal(err)
	}
	s.Apply(string(b))
}

// checkTenants compares each claim's owner with the label of its Hardware.
func checkTenants(s *suite.Suite) {
	s.Helper()
	yes := true
	claims, err := s.API.ListClaims(s.Context(), clientapi.ClaimFilter{Active: &yes})
	if err != nil {
		s.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range claims {
		h, err := s.API.Hardware.Get(s.Context(), c.Status.Hardware)
		if err != nil {
			s.Fatal(err)
		}
		tenant := h.Meta.Labels["tenant"]
		count[tenant]++
		if !strings.HasPrefix(c.Spec.Owner, "capi/"+tenant+"/") || tenant == "" {
			s.Errorf("%s claimed %s, which is %s's", c.Spec.Owner, h.Meta.Name, tenant)
		}
	}
	if count["red"] < 2 || count["blue"] != 2 {
		s.Errorf("claims by tenant: %v", count)
	}
}
