package suite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// number is a setting of the environment.
func number(t *testing.T, env string, fallback int) int {
	t.Helper()
	v := os.Getenv(env)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of at least 1", env, v)
	}
	return n
}

// idle is a system that does nothing: what it is given is somebody else's test.
func idle(ctx context.Context, _ *sim.Machine, _ *sim.System) { <-ctx.Done() }

// clusterYAML is a cluster without a control plane: its Machines have bootstrap data
// that is there already, and nobody waits for nodes.
func clusterYAML(name string, address int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: boot, namespace: default}
type: cluster.x-k8s.io/secret
stringData: {format: cloud-config, value: "#cloud-config\nhostname: a-node\n"}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: %[1]s, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapCluster
metadata: {name: %[1]s, namespace: default}
spec:
  controlPlaneEndpoint: {host: 10.77.255.%[2]d, port: 6443}
  appliance: {secretRef: {name: rackstrap}}
`, name, address)
}

// templateYAML is a template of machines.
func templateYAML(name string) string {
	return fmt.Sprintf(`---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachineTemplate
metadata: {name: %s, namespace: default}
spec: {template: {spec: {image: {name: %s}}}}
`, name, suite.Image)
}

// deploymentYAML is a MachineDeployment of a cluster with that template.
func deploymentYAML(cluster, template string, replicas int) string {
	return fmt.Sprintf(`---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: %[1]s, namespace: default}
spec:
  clusterName: %[1]s
  replicas: %[3]d
  # There are no nodes, so no Machine is ever available, and the usual rollout would wait.
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: "100%%"}}}
  selector: {matchLabels: {cluster.x-k8s.io/cluster-name: %[1]s, cluster.x-k8s.io/deployment-name: %[1]s}}
  template:
    metadata: {labels: {cluster.x-k8s.io/cluster-name: %[1]s, cluster.x-k8s.io/deployment-name: %[1]s}}
    spec:
      clusterName: %[1]s
      version: %[4]s
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapMachineTemplate, name: %[2]s}
`, cluster, template, replicas, suite.KubernetesVersion)
}

// provisioned is an error unless there are n RackstrapMachines and all are provisioned.
func provisioned(s *suite.Suite, n int) error {
	var list infrav1.RackstrapMachineList
	if err := s.Client.List(s.Context(), &list, client.InNamespace("default")); err != nil {
		return err
	}
	done := 0
	for _, m := range list.Items {
		if p := m.Status.Initialization.Provisioned; p != nil && *p && m.DeletionTimestamp.IsZero() {
			done++
		}
	}
	if done != n || len(list.Items) != n {
		return fmt.Errorf("%d RackstrapMachines, of which %d are provisioned, want %d", len(list.Items), done, n)
	}
	return nil
}

// meters are counters by name and labels, as Prometheus reads them.
type meters map[string]float64

func readMeters(r io.Reader) meters {
	out := meters{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if v, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
			out[lines.Text()[:at]] = v
		}
	}
	return out
}

// sum adds up those of a name whose labels have all the words.
func (m meters) sum(name string, words ...string) float64 {
	total := 0.0
	for k, v := range m {
		if n, labels, _ := strings.Cut(k, "{"); n == name && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(labels, w) }) {
			total += v
		}
	}
	return total
}

// since is what was counted after before.
func (m meters) since(before meters) meters {
	out := meters{}
	for k, v := range m {
		if d := v - before[k]; d != 0 {
			out[k] = d
		}
	}
	return out
}

// counted is what the parts have counted until now.
type counted struct{ server, provider, appliance meters }

func count(s *suite.Suite) counted {
	s.Helper()
	web := s.Lab.HTTPClient()
	defer web.CloseIdleConnections()
	get := func(url string) meters {
		resp, err := web.Get(url)
		if err != nil {
			s.Fatal(err)
		}
		defer resp.Body.Close()
		return readMeters(resp.Body)
	}
	return counted{
		server:   readMeters(strings.NewReader(s.Kubectl("get", "--raw", "/metrics"))),
		provider: get("http://" + s.Metrics + "/metrics"), appliance: get("http://127.0.0.1:7081/metrics"),
	}
}

func (c counted) since(b counted) counted {
	return counted{c.server.since(b.server), c.provider.since(b.provider), c.appliance.since(b.appliance)}
}

// resident is the memory of a process in MB, and its peak.
func resident(pid int) (now, peak float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			now = kib / 1000
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			peak = kib / 1000
		}
	}
	return now, peak
}

// writes are the verbs that change something.
var writes = []string{"POST", "PUT", "PATCH", "DELETE"}

// TestTwoHundredMachines: a MachineDeployment of as many machines as CAPI_MACHINES says
// is installed and given back by the real core, our provider and the appliance; and
// while nothing happens, next to nothing is asked.
func TestTwoHundredMachines(t *testing.T) { // not parallel: it measures
	n := number(t, "CAPI_MACHINES", 40)
	s := suite.New(t, suite.Options{Machines: n, CAPI: true, OS: idle})
	before := count(s)
	began := time.Now()
	s.Apply(clusterYAML("c1", 10) + templateYAML("t1") + deploymentYAML("c1", "t1", n))
	s.Within(15*time.Minute, "all machines are provisioned", func() error { return provisioned(s, n) })
	up := time.Since(began)
	working := count(s).since(before)
	for _, m := range s.Rack.Machines() {
		if sys, ok := m.Installed(); !ok || !strings.Contains(string(sys.UserData), "hostname: a-node") {
			t.Errorf("%s has %+v", m.Name(), sys)
		}
	}

	// What was begun ends first.
	var window counted
	const long = 30 * time.Second
	s.Within(5*time.Minute, "the provider writes nothing any more", func() error {
		before := count(s)
		time.Sleep(long) // the window that is measured
		window = count(s).since(before)
		for _, verb := range writes {
			if n := window.provider.sum("rest_client_requests_total", `method="`+verb+`"`); n > 0 {
				return fmt.Errorf("%v requests %s to the API server in %v: %v", n, verb, long, window.provider)
			}
		}
		return nil
	})
	perMinute := func(v float64) float64 { return v * float64(time.Minute) / float64(long) }
	reconciled := perMinute(window.provider.sum("controller_runtime_reconcile_total", `controller="rackstrapmachine"`))
	asked := perMinute(window.appliance.sum("rackstrap_api_requests_total"))
	read := perMinute(window.provider.sum("rest_client_requests_total"))
	// Each machine may be looked at now and then; what is not bounded so is a loop.
	if reconciled > float64(n) || asked > float64(2*n+20) || read > float64(2*n+20) {
		t.Errorf("in a minute of steady state: %.0f reconciles, %.0f requests at the appliance, %.0f at the API server\n%v\n%v",
			reconciled, asked, read, window.provider, window.appliance)
	}

	began = time.Now()
	s.Apply(deploymentYAML("c1", "t1", 0))
	s.Within(15*time.Minute, "all machines are back", func() error {
		if err := provisioned(s, 0); err != nil {
			return err
		}
		return s.AllAvailable()
	})
	down := time.Since(began)

	var table strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&table, "%-58s %s\n", what, fmt.Sprintf(format, args...))
	}
	row("machines", "%d", n)
	row("all provisioned after", "%.1f s", up.Seconds())
	row("all released, wiped and off after", "%.1f s", down.Seconds())
	row("requests until provisioned, for each machine:", "")
	row("  of our provider at the API server", "%.1f", working.provider.sum("rest_client_requests_total")/float64(n))
	row("  of our provider at the appliance", "%.1f", working.appliance.sum("rackstrap_api_requests_total")/float64(n))
	row("  of all at the API server", "%.1f", working.server.sum("apiserver_request_total")/float64(n))
	row("in a minute of steady state:", "")
	row("  reconciles of RackstrapMachines", "%.0f", reconciled)
	row("  requests of our provider at the API server", "%.0f, none of them a write", read)
	row("  requests of our provider at the appliance", "%.0f", asked)
	row("  requests of all at the API server", "%.0f", perMinute(window.server.sum("apiserver_request_total")))
	for _, p := range []struct {
		name string
		pid  int
	}{{"our provider", s.Plane.PID(suite.Provider)}, {"the appliance", s.Appliance.PID()}, {"the Cluster API's core", s.Plane.PID("capi-core")}, {"the API server", s.Plane.PID(kube.APIServer)}} {
		now, peak := resident(p.pid)
		row("memory of "+p.name, "%.0f MB, at most %.0f MB", now, peak)
	}
	t.Log("\n" + table.String())
	if err := s.Client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1"}}); err != nil {
		t.Error(err)
	}
	s.Eventually("the cluster is gone", func() error { return gone(s, "c1") })
}

// gone is an error while there is a Cluster of that name.
func gone(s *suite.Suite, name string) error {
	err := s.Get("default", name, new(clusterv1.Cluster))
	if err == nil {
		return fmt.Errorf("the Cluster %s is still there", name)
	}
	return client.IgnoreNotFound(err)
}
