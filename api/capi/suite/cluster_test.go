package suite_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
)

// clusters is what the tests of RackstrapClusters do. The core does not run: it would do
// no more than to set the owners.
type clusters struct {
	*suite.Suite
	pokes int
}

// owned makes a Cluster and a RackstrapCluster of that name, which it owns.
func (s *clusters) owned(name, spec string) {
	s.Helper()
	s.Apply(fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: %[1]s, namespace: default}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: %[1]s}}
`, name))
	uid := s.Kubectl("get", "cluster", name, "-o", "jsonpath={.metadata.uid}")
	s.Apply(fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapCluster
metadata:
  name: %[1]s
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: %[1]s}
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: %[1]s, uid: %[2]s}]
spec: %[3]s
`, name, uid, spec))
}

// secret writes the Secret of a name.
func (s *clusters) secret(name string, data map[string]string) {
	s.Helper()
	b, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "default"}, "stringData": data})
	if err != nil {
		s.Fatal(err)
	}
	s.Apply(string(b))
}

// poke has the provider look at a RackstrapCluster now: Secrets are not watched.
func (s *clusters) poke(name string) {
	s.Helper()
	s.pokes++
	s.Kubectl("annotate", "--overwrite", "rackstrapcluster", name, fmt.Sprintf("test.example/poke=%d", s.pokes))
}

// says waits until a condition of a RackstrapCluster has a reason, and a message with
// text in it.
func (s *clusters) says(name, kind, reason, text string) *infrav1.RackstrapCluster {
	s.Helper()
	c := new(infrav1.RackstrapCluster)
	s.Eventually(fmt.Sprintf("%s of %s is %s", kind, name, reason), func() error {
		*c = infrav1.RackstrapCluster{}
		if err := s.Get("default", name, c); err != nil {
			return err
		}
		have := meta.FindStatusCondition(c.Status.Conditions, kind)
		if have == nil || have.Reason != reason || !strings.Contains(have.Message, text) {
			return fmt.Errorf("conditions %+v", c.Status.Conditions)
		}
		return nil
	})
	return c
}

// divided is says that waits for the failure domains too: the conditions and the rest of
// a status are two writes.
func (s *clusters) divided(name, kind, reason, text, all, controlPlane string) *infrav1.RackstrapCluster {
	s.Helper()
	c := s.says(name, kind, reason, text)
	s.Eventually("the failure domains of "+name, func() error {
		if err := s.Get("default", name, c); err != nil {
			return err
		}
		if names(c.Status.FailureDomains, false) != all || names(c.Status.FailureDomains, true) != controlPlane {
			return fmt.Errorf("want %q and %q: %+v", all, controlPlane, c.Status.FailureDomains)
		}
		return nil
	})
	return c
}

// claimer makes a token and the data of a Secret for it.
func (s *clusters) claimer(name, prefix, selector string) map[string]string {
	s.Helper()
	t, err := s.API.CreateToken(s.Context(), name, api.NewTokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: prefix, Selector: selector})
	if err != nil {
		s.Fatal(err)
	}
	return map[string]string{"url": s.Connection()["url"], "token": t.Secret, "ownerPrefix": prefix, "fingerprint": t.Fingerprint}
}

// authority is a certificate of one that signed nothing of the appliance's.
func authority(t *testing.T) string {
	t.Helper()
	ca, err := kube.NewAuthority("another")
	if err != nil {
		t.Fatal(err)
	}
	return string(ca.CertPEM)
}

func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		if _, ok := out[k]; !ok {
			out[k] = v
		}
	}
	return out
}

func names(d []clusterv1.FailureDomain, controlPlane bool) string {
	var out []string
	for _, f := range d {
		if !controlPlane || ptr.Deref(f.ControlPlane, false) {
			out = append(out, f.Name)
		}
	}
	return strings.Join(out, " ")
}

// A RackstrapCluster says what is wrong with its appliance, in the appliance's words, and
// what to type; once provisioned it stays so. Its Secret stays while a claim needs it. Two
// clusters may have two appliances, and two tenants one.
func TestRackstrapCluster(t *testing.T) {
	t.Parallel()
	s := &clusters{Suite: suite.New(t, suite.Options{Machines: 4, Specs: []sim.Spec{{Name: "small", CPUs: 2, MemoryBytes: 8 << 30, Labels: map[string]string{"tenant": "red", "room": "north"}}}})}
	right := s.claimer("c1", "capi/c1", "")
	system := with(right, "ca.crt", "") // what a Secret had in stringData stays in it until it is written over
	const mine = "{appliance: {secretRef: {name: mine}}}"
	s.owned("c1", mine)
	c := s.says("c1", clusterv1.ReadyCondition, infrav1.ApplianceSecretMissingReason, "default/mine does not exist")
	if c.Status.Initialization.Provisioned != nil {
		t.Error("provisioned without an appliance")
	}
	for _, tc := range []struct {
		data         map[string]string
		reason, text string
	}{
		{with(right, "token", ""), infrav1.ApplianceSecretInvalidReason, "has no token"},
		{with(right, "url", "http://appliance.example"), infrav1.ApplianceSecretInvalidReason, "not https"},
		{with(right, "ca.crt", "nonsense"), infrav1.ApplianceSecretInvalidReason, "no certificate in it"},
		{with(system, "fingerprint", strings.Repeat("0", 64)), infrav1.ApplianceUnreachableReason, "rackstrap version"},
		{with(with(right, "ca.crt", authority(t)), "fingerprint", ""), infrav1.ApplianceUnreachableReason, "unknown authority"},
		{with(system, "url", "https://"+s.Lab.Gateway().String()+":9"), infrav1.ApplianceUnreachableReason, "nobody listens there"},
		{with(system, "token", "rst_nobody"), infrav1.ApplianceRefusedReason, "token"},
		{with(system, "ownerPrefix", "capi/c2"), infrav1.ApplianceSecretInvalidReason, "set ownerPrefix to capi/c1"},
	} {
		s.secret("mine", with(tc.data, "unused", "x"))
		s.poke("c1")
		s.says("c1", infrav1.ApplianceReachableCondition, tc.reason, tc.text)
	}
	s.secret("mine", system)
	s.poke("c1")
	c = s.divided("c1", clusterv1.ReadyCondition, infrav1.WaitingForEndpointReason, "spec.controlPlaneEndpoint", "a b c", "a b c")
	if c.Status.Initialization.Provisioned != nil {
		t.Error("provisioned without an endpoint")
	}
	// the Cluster's own endpoint will do
	s.Kubectl("patch", "cluster", "c1", "--type=merge", "-p", `{"spec":{"controlPlaneEndpoint":{"host":"10.77.255.10","port":6443}}}`)
	s.Eventually("c1 is provisioned", func() error {
		if err := s.Get("default", "c1", c); err != nil || !ptr.Deref(c.Status.Initialization.Provisioned, false) {
			return fmt.Errorf("%w, %+v", err, c.Status)
		}
		return nil
	})
	s.says("c1", clusterv1.ReadyCondition, clusterv1.ReadyReason, "")

	t.Log("the appliance is down for a while")
	if err := s.Appliance.Kill(); err != nil {
		t.Fatal(err)
	}
	s.poke("c1")
	c = s.says("c1", clusterv1.ReadyCondition, infrav1.ApplianceUnreachableReason, "nobody listens there")
	if !ptr.Deref(c.Status.Initialization.Provisioned, false) || names(c.Status.FailureDomains, false) != "a b c" {
		t.Errorf("it forgot what it knew: %+v", c.Status)
	}
	if err := s.Appliance.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.poke("c1")
	s.says("c1", clusterv1.ReadyCondition, clusterv1.ReadyReason, "")

	for _, tc := range []struct{ spec, reason, text, all, controlPlane string }{
		{`{"label":"room"}`, infrav1.FailureDomainsKnownReason, "", "north", "north"},
		{`{"label":"nothing"}`, infrav1.NoFailureDomainsReason, "rackstrap hardware label NAME nothing=VALUE", "", ""},
		{`{"controlPlane":["b","z"]}`, infrav1.FailureDomainsKnownReason, "is in z", "a b c", "b"},
		{`{"controlPlane":["z"]}`, infrav1.NoFailureDomainsReason, "there are: a, b, c", "a b c", ""},
	} {
		s.Kubectl("patch", "rackstrapcluster", "c1", "--type=json", "-p", `[{"op":"add","path":"/spec/failureDomains","value":`+tc.spec+`}]`)
		s.divided("c1", infrav1.FailureDomainsKnownCondition, tc.reason, tc.text, tc.all, tc.controlPlane)
	}
	s.Kubectl("patch", "rackstrapcluster", "c1", "--type=json", "-p", `[{"op":"add","path":"/spec/failureDomains","value":{"disabled":true}}]`)
	s.Eventually("no failure domains where they are disabled", func() error {
		c := new(infrav1.RackstrapCluster)
		if err := s.Get("default", "c1", c); err != nil {
			return err
		}
		if len(c.Status.FailureDomains) > 0 || meta.FindStatusCondition(c.Status.Conditions, infrav1.FailureDomainsKnownCondition) != nil {
			return fmt.Errorf("%+v", c.Status)
		}
		return nil
	})

	twoAppliances(t, s)
	capacity(s)
	paused(t, s)
	handedOver(t, s)
	deletion(t, s)
}

// Two tenants of one appliance see their own Hardware, and another cluster's is in
// another appliance.
func twoAppliances(t *testing.T, s *clusters) {
	other, far := s.NewAppliance()
	mac, err := hardware.ParseMAC("52:54:00:77:77:77")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Client.Hardware.Create(t.Context(), &hardware.Hardware{Meta: hardware.Meta{Name: "far"}, Spec: hardware.Spec{Rack: "elsewhere", Interfaces: []hardware.NIC{{MAC: mac}}}}); err != nil {
		t.Fatal(err)
	}
	s.secret("far", far)
	s.secret("red", s.claimer("red", "capi/red", "tenant=red"))
	const spec = "{controlPlaneEndpoint: {host: 10.77.255.11, port: 6443}, appliance: {secretRef: {name: %s}}, failureDomains: {label: %s}}"
	s.owned("far", fmt.Sprintf(spec, "far", "rack"))
	s.owned("red", fmt.Sprintf(spec, "red", "room"))
	for name, want := range map[string]string{"far": "elsewhere", "red": "north"} {
		s.divided(name, clusterv1.ReadyCondition, clusterv1.ReadyReason, "", want, want)
	}
}

// A template says how many machines it could have, and what is missing to say more: the
// machines were never looked into. One that no cluster uses says that.
func capacity(s *clusters) {
	template := func(name, owner, spec string) {
		s.Apply(fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: RackstrapMachineTemplate\nmetadata: {name: %s, namespace: default%s}\nspec: {template: {spec: %s}}\n", name, owner, spec))
	}
	uid := s.Kubectl("get", "cluster", "c1", "-o", "jsonpath={.metadata.uid}")
	byOwner := ", ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: c1, uid: " + uid + "}]"
	byLabel := ", labels: {cluster.x-k8s.io/cluster-name: c1}"
	template("any", byOwner, "{image: {name: node}}")
	template("huge", byLabel, "{image: {name: node}, requirements: {memory: 16Ti}}")
	template("free", "", "{image: {name: node}}")
	for name, tc := range map[string]struct {
		reason, text string
		fits         int32
	}{
		"any":  {infrav1.NoHardwareFitsReason, "rackstrap hardware inspect", 5},
		"huge": {infrav1.NoHardwareFitsReason, "5 without facts", 0},
		"free": {infrav1.WaitingForClusterReason, "no Cluster uses this template", 0},
	} {
		s.Eventually("the capacity of "+name, func() error {
			m := new(infrav1.RackstrapMachineTemplate)
			if err := s.Get("default", name, m); err != nil {
				return err
			}
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition)
			if c == nil || c.Reason != tc.reason || !strings.Contains(c.Message, tc.text) || ptr.Deref(m.Status.Fits, 0) != tc.fits || ptr.Deref(m.Status.Free, 0) != tc.fits || tc.fits > 0 && m.Status.NodeInfo.Architecture != "amd64" {
				return fmt.Errorf("%+v", m.Status)
			}
			return nil
		})
	}
}

// A cluster that is paused, and one that something else manages, is left alone.
func paused(t *testing.T, s *clusters) {
	s.Kubectl("patch", "cluster", "red", "--type=merge", "-p", `{"spec":{"paused":true}}`)
	s.says("red", clusterv1.PausedCondition, clusterv1.PausedReason, "spec.paused")
	s.Kubectl("patch", "rackstrapcluster", "red", "--type=merge", "-p", `{"spec":{"failureDomains":{"label":"nothing"}}}`)
	s.Kubectl("annotate", "rackstrapcluster", "c1", "cluster.x-k8s.io/managed-by=somebody")
	s.Kubectl("patch", "rackstrapcluster", "c1", "--type=json", "-p", `[{"op":"remove","path":"/spec/failureDomains"}]`)
	s.says("far", clusterv1.ReadyCondition, clusterv1.ReadyReason, "") // others go on
	s.Kubectl("patch", "cluster", "red", "--type=merge", "-p", `{"spec":{"paused":false}}`)
	c := s.divided("red", infrav1.FailureDomainsKnownCondition, infrav1.NoFailureDomainsReason, "nothing", "", "")
	if err := s.Get("default", "c1", c); err != nil || len(c.Status.FailureDomains) > 0 {
		t.Errorf("somebody else's cluster: %v, %+v", err, c.Status)
	}
	s.Kubectl("annotate", "rackstrapcluster", "c1", "cluster.x-k8s.io/managed-by-")
	s.Eventually("c1 is ours again", func() error {
		if err := s.Get("default", "c1", c); err != nil || names(c.Status.FailureDomains, false) != "a b c" {
			return fmt.Errorf("%w, %+v", err, c.Status)
		}
		return nil
	})
}

// claim makes a RackstrapMachine of a cluster with a claim by the token of a Secret, and
// waits until the cluster knows it. There is one at a time.
func (s *clusters) claim(cluster, secret string) {
	s.Helper()
	s.Apply(fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachine
metadata: {name: m, namespace: default, labels: {cluster.x-k8s.io/cluster-name: %s}}
spec: {image: {name: node}, claimID: none, appliance: {secretRef: {name: %s}}}
`, cluster, secret))
	s.Eventually("the machine counts", func() error {
		c := new(infrav1.RackstrapCluster)
		if err := s.Get("default", cluster, c); err != nil || ptr.Deref(c.Status.Machines, 0) != 1 {
			return fmt.Errorf("%w, %v", err, c.Status.Machines)
		}
		return nil
	})
}

// unclaim ends what claim made.
func (s *clusters) unclaim() {
	s.Helper()
	s.Kubectl("patch", "rackstrapmachine", "m", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	s.Kubectl("delete", "rackstrapmachine", "m")
}

// finalizers are those of a Secret.
func (s *clusters) finalizers(name string) string {
	x := new(corev1.Secret)
	if err := s.Get("default", name, x); err != nil {
		return err.Error()
	}
	return strings.Join(x.Finalizers, " ")
}

// A cluster that was ours is somebody else's now, and is deleted: what we put on it and
// on its Secret to keep them stays until no claim needs them, and goes then.
func handedOver(t *testing.T, s *clusters) {
	s.claim("far", "far")
	s.Kubectl("annotate", "rackstrapcluster", "far", "cluster.x-k8s.io/managed-by=somebody")
	s.Kubectl("delete", "--wait=false", "rackstrapcluster", "far")
	s.says("far", clusterv1.ReadyCondition, infrav1.WaitingForMachinesReason, ": m")
	if f := s.finalizers("far"); f != infrav1.SecretFinalizer {
		t.Errorf("the Secret that a claim needs: %s", f)
	}
	s.unclaim()
	s.Eventually("it is gone", func() error {
		if err := s.Get("default", "far", new(infrav1.RackstrapCluster)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
	if f := s.finalizers("far"); f != "" {
		t.Errorf("the Secret of a cluster that is gone: %s", f)
	}
}

// The Secret is changed for another one, and the cluster deleted, while a machine has a
// claim that only the first one's token can end: both Secrets stay, and go with it.
func deletion(t *testing.T, s *clusters) {
	s.claim("c1", "mine")
	s.Kubectl("patch", "rackstrapcluster", "c1", "--type=merge", "-p", `{"spec":{"appliance":{"secretRef":{"name":"`+suite.Secret+`"}}}}`)
	s.Eventually("both Secrets are kept", func() error {
		for _, name := range []string{"mine", suite.Secret} {
			if f := s.finalizers(name); f != infrav1.SecretFinalizer {
				return fmt.Errorf("%s: %s", name, f)
			}
		}
		return nil
	})
	for _, what := range []string{"secret/mine", "secret/" + suite.Secret, "rackstrapcluster/c1"} {
		s.Kubectl("delete", "--wait=false", what)
	}
	s.says("c1", clusterv1.ReadyCondition, infrav1.WaitingForMachinesReason, ": m")
	if f := s.finalizers("mine"); f != infrav1.SecretFinalizer {
		t.Errorf("the Secret that a claim needs: %s", f)
	}
	s.unclaim()
	s.Eventually("all is gone", func() error {
		for name, err := range map[string]error{
			"cluster": s.Get("default", "c1", new(infrav1.RackstrapCluster)),
			"mine":    s.Get("default", "mine", new(corev1.Secret)), "rackstrap": s.Get("default", suite.Secret, new(corev1.Secret)),
		} {
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}
