// Package upstream_test runs the specs that the Cluster API itself is tested with,
// unmodified, against our provider: sigs.k8s.io/cluster-api/test is their version. The
// machines are simulated, all else is real.
package upstream_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/test/e2e"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// The specs' framework dials by itself. So the test runs itself once more inside the
// lab's namespace, where this says what there is.
const (
	configEnv    = "RACKSTRAP_UPSTREAM_CLUSTERCTL"
	artifactsEnv = "RACKSTRAP_UPSTREAM_ARTIFACTS"
	focusEnv     = "RACKSTRAP_UPSTREAM_FOCUS" // of the specs' names; empty: all
)

const flavor = "lab"

func TestUpstream(t *testing.T) {
	if os.Getenv(configEnv) != "" {
		RegisterFailHandler(Fail)
		s, r := GinkgoConfiguration()
		s.FocusStrings = strings.Fields(os.Getenv(focusEnv))
		r.Verbose, r.NoColor = true, true
		RunSpecs(t, "Cluster API", s, r)
		return
	}
	s := suite.New(t, suite.Options{Machines: 8, CAPI: true, Clusterctl: true, Flavors: flavors(t)})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.Plane.Command(t.Context(), self, "-test.run=^TestUpstream$", "-test.v")
	cmd.Env = append(cmd.Env, environment(t, s)...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.Log(lines.Text())
		}
	}()
	err = cmd.Run()
	_ = in.Close()
	<-done
	if err != nil {
		t.Error(err)
	}
	s.Eventually("every machine is back", s.AllAvailable)
}

// flavors are the cluster templates.
func flavors(t *testing.T) map[string][]byte {
	t.Helper()
	lab, err := os.ReadFile("testdata/cluster-template-lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	check, err := os.ReadFile("testdata/health-check.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{flavor: lab, flavor + "-remediation": append(lab, check...)}
}

// environment has the variables of the templates, which clusterctl reads there.
func environment(t *testing.T, s *suite.Suite) []string {
	t.Helper()
	ca, err := kube.NewAuthority("etcd")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Client("apiserver-etcd-client")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		configEnv + "=" + s.Plane.RepositoryConfig(), artifactsEnv + "=" + t.ArtifactDir(),
		"ETCD_CA=" + base64Std(ca.CertPEM), "ETCD_CERT=" + base64Std(pair.Cert), "ETCD_KEY=" + base64Std(pair.Key),
	}
	for k, v := range s.Connection() {
		env = append(env, "RACKSTRAP_"+strings.ToUpper(k)+"="+v)
	}
	return env
}

// input is what all specs are given.
type input struct {
	config     *clusterctl.E2EConfig
	clusterctl string
	proxy      framework.ClusterProxy
	artifacts  string
}

// given is called before each spec: each cluster has an endpoint of its own.
func given() input {
	Expect(os.Setenv("CONTROL_PLANE_ENDPOINT_HOST", suite.FreeHost())).To(Succeed())
	s := runtime.NewScheme()
	framework.TryAddDefaultSchemes(s)
	Expect(infrav1.AddToScheme(s)).To(Succeed())
	intervals := map[string][]string{}
	for _, name := range []string{
		"wait-cluster", "wait-control-plane", "wait-worker-nodes", "wait-delete-cluster", "wait-machine-upgrade", "wait-nodes-ready",
		"wait-machine-remediation", "wait-control-plane-upgrade", "wait-machine-deployment-upgrade", "wait-machines", "wait-machine-deleted",
		"wait-deployment-available", "wait-resource-versions-become-stable", "wait-machine-provisioned", "wait-machine-pool-nodes",
	} {
		intervals["default/"+name] = []string{"6m", "1s"}
	}
	return input{
		config:     &clusterctl.E2EConfig{Variables: map[string]string{e2e.KubernetesVersion: suite.KubernetesVersion}, Intervals: intervals},
		clusterctl: os.Getenv(configEnv), artifacts: os.Getenv(artifactsEnv),
		proxy: framework.NewClusterProxy("management", os.Getenv("KUBECONFIG"), s),
	}
}

var infrastructure = ptr.To("rackstrap")

var _ = Describe("QuickStart", func() {
	e2e.QuickStartSpec(context.Background(), func() e2e.QuickStartSpecInput {
		g := given()
		return e2e.QuickStartSpecInput{
			E2EConfig: g.config, ClusterctlConfigPath: g.clusterctl, BootstrapClusterProxy: g.proxy, ArtifactFolder: g.artifacts,
			InfrastructureProvider: infrastructure, Flavor: ptr.To(flavor),
		}
	})
})

var _ = Describe("MachineDeploymentScale", func() {
	e2e.MachineDeploymentScaleSpec(context.Background(), func() e2e.MachineDeploymentScaleSpecInput {
		g := given()
		return e2e.MachineDeploymentScaleSpecInput{
			E2EConfig: g.config, ClusterctlConfigPath: g.clusterctl, BootstrapClusterProxy: g.proxy, ArtifactFolder: g.artifacts,
			InfrastructureProvider: infrastructure, Flavor: flavor,
		}
	})
})

var _ = Describe("MachineDeploymentRemediation", func() {
	e2e.MachineDeploymentRemediationSpec(context.Background(), func() e2e.MachineDeploymentRemediationSpecInput {
		g := given()
		return e2e.MachineDeploymentRemediationSpecInput{
			E2EConfig: g.config, ClusterctlConfigPath: g.clusterctl, BootstrapClusterProxy: g.proxy, ArtifactFolder: g.artifacts,
			InfrastructureProvider: infrastructure, Flavor: ptr.To(flavor + "-remediation"),
		}
	})
})

var _ = Describe("KCPAndMachineDeploymentRollout", func() {
	e2e.KCPAndMachineDeploymentRolloutSpec(context.Background(), func() e2e.KCPAndMachineDeploymentRolloutSpecInput {
		g := given()
		return e2e.KCPAndMachineDeploymentRolloutSpecInput{
			E2EConfig: g.config, ClusterctlConfigPath: g.clusterctl, BootstrapClusterProxy: g.proxy, ArtifactFolder: g.artifacts,
			InfrastructureProvider: infrastructure, Flavor: flavor,
		}
	})
})

var _ = Describe("ClusterDeletion", func() {
	e2e.ClusterDeletionSpec(context.Background(), func() e2e.ClusterDeletionSpecInput {
		g := given()
		return e2e.ClusterDeletionSpecInput{
			E2EConfig: g.config, ClusterctlConfigPath: g.clusterctl, BootstrapClusterProxy: g.proxy, ArtifactFolder: g.artifacts,
			InfrastructureProvider: infrastructure, Flavor: ptr.To(flavor), ControlPlaneMachineCount: ptr.To[int64](3),
			ClusterDeletionPhases: []e2e.ClusterDeletionPhase{
				phase("Machine", []string{"MachineDeployment", "MachineSet"}, "MachineDeployment", "MachineSet"),
				phase("Machine", []string{"KubeadmControlPlane"}, "KubeadmControlPlane"),
				phase("RackstrapCluster", nil, "RackstrapCluster"),
			},
		}
	})
})

// phase is a step of a deletion: objects of these kinds, and Machines of these owners,
// are gone after it. Those of the kind blocking are what it waits for.
func phase(blocking string, owners []string, kinds ...string) e2e.ClusterDeletionPhase {
	in := func(s string, list []string) bool {
		for _, x := range list {
			if x == s {
				return true
			}
		}
		return false
	}
	return e2e.ClusterDeletionPhase{
		ObjectFilter: func(o corev1.ObjectReference, refs []metav1.OwnerReference) bool {
			for _, r := range refs {
				if o.Kind == "Machine" && in(r.Kind, owners) {
					return true
				}
			}
			return in(o.Kind, kinds)
		},
		BlockingObjectFilter: func(o corev1.ObjectReference, _ []metav1.OwnerReference) bool { return o.Kind == blocking },
	}
}

func base64Std(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
