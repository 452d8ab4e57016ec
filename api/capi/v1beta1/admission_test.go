package v1beta1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// server is a real API server with our kinds and policies, and nothing else.
func server(t *testing.T) client.Client {
	t.Helper()
	bin, err := kube.Tools(t.Context(), func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	p, err := kube.Start(t.Context(), kube.Options{Dir: t.TempDir(), Bin: bin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	// a schema that is not structural, or whose rules cost too much, is refused here
	if err := p.ApplyCRDs(t.Context(), crdDir); err != nil {
		t.Fatal(err)
	}
	out, err := p.Kubectl(t.Context(), "get", "crd", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="NonStructuralSchema")].message}{.status.conditions[?(@.type=="NamesAccepted")].status}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, " True\n"); n != len(kinds()) {
		t.Fatalf("not all CRDs were taken as they are:\n%s", out)
	}
	policies, err := filepath.Glob("../../../deploy/capi/config/admission/*.yaml")
	if err != nil || len(policies) == 0 {
		t.Fatalf("no policies: %v", err)
	}
	for _, f := range policies {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Apply(t.Context(), string(raw)); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// object reads one document; the group's version is left out in the tests.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n"+text), &o.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	o.SetNamespace("default")
	return o
}

const (
	machineTemplate = `
kind: RackstrapMachineTemplate
metadata: {name: workers}
spec: {template: {spec: {image: {name: node}, hardwareSelector: {matchExpressions: [{key: rack, operator: In, values: [a]}]}}}}
`
	clusterTemplate = `
kind: RackstrapClusterTemplate
metadata: {name: clusters}
spec: {template: {spec: {appliance: {secretRef: {name: appliance}}, controlPlaneEndpoint: {port: 6443}}}}
`
	remediationTemplate = `
kind: RackstrapRemediationTemplate
metadata: {name: remedy}
spec: {template: {spec: {}}}
`
)

// active waits until the API server obeys the policies, which it reads when it has the
// time.
func active(t *testing.T, c client.Client) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, tc := range []struct{ text, want string }{
		{strings.Replace(machineTemplate, "operator: In", "operator: Like", 1), "none of In"},
		{strings.Replace(machineTemplate, "name: node", "name: other", 1), "does not change"},
	} {
		for {
			o := object(t, tc.text)
			var err error
			if strings.Contains(tc.want, "change") {
				err = update(t.Context(), c, o, client.DryRunAll)
			} else {
				err = c.Create(t.Context(), o, client.DryRunAll)
			}
			if err != nil && strings.Contains(err.Error(), tc.want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the policy does not answer %q: %v", tc.want, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// update replaces what is there of the same name.
func update(ctx context.Context, c client.Client, o *unstructured.Unstructured, opts ...client.UpdateOption) error {
	have := o.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return err
	}
	o.SetResourceVersion(have.GetResourceVersion())
	return c.Update(ctx, o, opts...)
}

// The API server alone refuses what makes no sense, and lets a ClusterClass ask.
func TestAdmission(t *testing.T) {
	t.Parallel()
	c := server(t)
	for _, text := range []string{machineTemplate, clusterTemplate, remediationTemplate} {
		if err := c.Create(t.Context(), object(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	active(t, c)
	t.Run("templates", func(t *testing.T) { templates(t, c) })
	t.Run("fields", func(t *testing.T) { fields(t, c) })
	t.Run("once", func(t *testing.T) { once(t, c) })
}

func templates(t *testing.T, c client.Client) {
	change := func(text string, annotations map[string]string) *unstructured.Unstructured {
		o := object(t, strings.NewReplacer("name: node", "name: other", "6443", "7443", "spec: {}", "spec: {retryLimit: 2}").Replace(text))
		o.SetAnnotations(annotations)
		return o
	}
	topology := map[string]string{"topology.cluster.x-k8s.io/dry-run": ""}
	for _, tc := range []struct {
		name string
		o    *unstructured.Unstructured
		opts []client.UpdateOption
		want string
	}{
		{"a machine template", change(machineTemplate, nil), nil, "workers does not change"},
		{"a cluster template", change(clusterTemplate, nil), nil, "clusters does not change"},
		{"a dry run", change(machineTemplate, nil), []client.UpdateOption{client.DryRunAll}, "create a template with another name"},
		{"the annotation, and no dry run", change(machineTemplate, topology), nil, "does not change"},
		{"the topology controller's question", change(machineTemplate, topology), []client.UpdateOption{client.DryRunAll}, ""},
		{"the same of a cluster template", change(clusterTemplate, topology), []client.UpdateOption{client.DryRunAll}, ""},
		{"labels", func() *unstructured.Unstructured {
			o := object(t, machineTemplate)
			o.SetLabels(map[string]string{"a": "b"})
			return o
		}(), nil, ""},
		{"a remediation template", change(remediationTemplate, nil), nil, ""},
	} {
		err := update(t.Context(), c, tc.o, tc.opts...)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want …%s…", tc.name, err, tc.want)
		}
	}
	o := object(t, machineTemplate)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	if name, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "image", "name"); name != "node" {
		t.Errorf("the template has image %s after all", name)
	}
}

func fields(t *testing.T, c client.Client) {
	machine := func(spec string) string { return "kind: RackstrapMachine\nmetadata: {name: m}\nspec: " + spec }
	cluster := func(spec string) string { return "kind: RackstrapCluster\nmetadata: {name: c}\nspec: " + spec }
	for _, tc := range []struct{ name, text, want string }{
		{"the least", machine("{image: {name: node}}"), ""},
		{"no image", machine("{}"), "image"},
		{"two images", machine("{image: {name: node, url: 'https://x/y'}}"), "give one of name, url and lookup"},
		{"an image by lookup", machine("{image: {lookup: {os: debian, version: '12', format: '{os}-{version}-kube-{kubernetesVersion}'}}}"), ""},
		{"a checksum without url", machine("{image: {name: node, checksum: 'md5:d41d8cd98f00b204e9800998ecf8427e'}}"), "checksum goes with url"},
		{"md5", machine("{image: {url: 'https://x/y', checksum: 'md5:d41d8cd98f00b204e9800998ecf8427e'}}"), ""},
		{"a list of checksums", machine("{image: {url: 'https://x/y', checksum: 'https://x/SHA256SUMS'}}"), ""},
		{"a short checksum", machine("{image: {url: 'https://x/y', checksum: 'sha256:abcd'}}"), "checksum"},
		{"no http", machine("{image: {url: 'oci://x/y'}}"), "url"},
		{"everything", machine(`{image: {name: node}, disk: smallest, bootstrapFormat: cloud-config, waitForPhoneHome: true, template: own, parameters: {a: 1, b: [x]}, metaData: {a: b},
  hardwareSelector: {matchLabels: {tier: gold}, matchExpressions: [{key: gpu, operator: DoesNotExist}]}, requirements: {architecture: amd64, cpus: 4, memory: 64Gi, disks: [{count: 2, size: 500G, rotational: false}], nics: [{mbps: 10000}]},
  preferred: [{weight: -50, hardwareSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [gold]}]}}], spread: {label: rack}, reuse: {disks: Keep, seconds: 600},
  network: {addresses: [{poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool}}], nameservers: [192.0.2.1]}}`), ""},
		{"an operator that there is not", machine("{image: {name: node}, hardwareSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}"), "none of In, NotIn"},
		{"one in a preference", machine("{image: {name: node}, preferred: [{weight: 5, hardwareSelector: {matchExpressions: [{key: a, operator: in, values: [b]}]}}]}"), "none of In, NotIn"},
		{"In without values", machine("{image: {name: node}, hardwareSelector: {matchExpressions: [{key: a, operator: In}]}}"), "In and NotIn need values"},
		{"Exists with values", machine("{image: {name: node}, hardwareSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}"), "In and NotIn need values"},
		{"weight 0", machine("{image: {name: node}, preferred: [{weight: 0, hardwareSelector: {matchLabels: {a: b}}}]}"), "weight"},
		{"a spread without label", machine("{image: {name: node}, spread: {weight: 3}}"), "give label too"},
		{"a reuse without disks", machine("{image: {name: node}, reuse: {seconds: 600}}"), "say with disks"},
		{"phone home of Talos", machine("{image: {name: node}, bootstrapFormat: talos, waitForPhoneHome: true}"), "does not phone home"},
		{"addresses and a whole config", machine("{image: {name: node}, network: {config: 'version: 2', addresses: [{poolRef: {apiGroup: a, kind: B, name: c}}]}}"), "config is the whole configuration"},
		{"a claim without appliance", machine("{image: {name: node}, claimID: x}"), "a claim needs appliance"},
		{"an architecture that there is not", machine("{image: {name: node}, requirements: {architecture: x86_64}}"), "architecture"},
		{"a cluster", cluster("{appliance: {secretRef: {name: s}}}"), ""},
		{"a cluster without appliance", cluster("{controlPlaneEndpoint: {host: a, port: 1}}"), "appliance"},
		{"a host without port", cluster("{appliance: {secretRef: {name: s}}, controlPlaneEndpoint: {host: a}}"), "host and port go together"},
		{"a port that there is not", cluster("{appliance: {secretRef: {name: s}}, controlPlaneEndpoint: {host: a, port: 65536}}"), "port"},
		{"a placement that there is not", cluster("{appliance: {secretRef: {name: s}}, failureDomains: {placement: Maybe}}"), "placement"},
		{"a template with a claim", "kind: RackstrapMachineTemplate\nmetadata: {name: t}\nspec: {template: {spec: {image: {name: node}, claimID: x, appliance: {secretRef: {name: s}}}}}", "leave them out of a template"},
	} {
		err := c.Create(t.Context(), object(t, tc.text), client.DryRunAll)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want …%s…", tc.name, err, tc.want)
		}
	}
}

// What the provider writes is written once; all the rest of a machine may change, as an
// in-place update does it.
func once(t *testing.T, c client.Client) {
	start := "kind: RackstrapMachine\nmetadata: {name: m}\nspec: {image: {name: node}"
	if err := c.Create(t.Context(), object(t, start+"}")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, more, want string }{
		{"the claim", ", claimID: c1, appliance: {secretRef: {name: s}}}", ""},
		{"the provider id", ", claimID: c1, appliance: {secretRef: {name: s}}, providerID: 'rackstrap://a/b/c1'}", ""},
		{"another claim", ", claimID: c2, appliance: {secretRef: {name: s}}, providerID: 'rackstrap://a/b/c1'}", "claimID is written once"},
		{"no claim", ", appliance: {secretRef: {name: s}}, providerID: 'rackstrap://a/b/c1'}", "claimID is written once"},
		{"another provider id", ", claimID: c1, appliance: {secretRef: {name: s}}, providerID: 'rackstrap://a/b/c2'}", "providerID is written once"},
		{"another appliance", ", claimID: c1, appliance: {secretRef: {name: other}}, providerID: 'rackstrap://a/b/c1'}", "appliance stays as it is"},
		{"another disk", ", claimID: c1, appliance: {secretRef: {name: s}}, providerID: 'rackstrap://a/b/c1', disk: largest}", ""},
	} {
		err := update(t.Context(), c, object(t, start+tc.more))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want …%s…", tc.name, err, tc.want)
		}
	}
}
