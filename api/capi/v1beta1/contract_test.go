package v1beta1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

const crdDir = "../../../deploy/capi/config/crd"

// kinds are all of ours; true for those that have a status.
func kinds() map[string]bool {
	return map[string]bool{
		"RackstrapCluster": true, "RackstrapClusterTemplate": false, "RackstrapMachine": true, "RackstrapMachineTemplate": true,
		"RackstrapRemediation": true, "RackstrapRemediationTemplate": false,
	}
}

func readCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(raw, c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[c.Spec.Names.Kind] = c
	}
	if len(out) != len(kinds()) {
		t.Fatalf("%d kinds have a CRD, %d are expected", len(out), len(kinds()))
	}
	return out
}

// at is the schema of a field, nil where there is none. [] stands for the items.
func at(s *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for p := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(p, "[]")
		next, ok := s.Properties[name]
		if !ok {
			return nil
		}
		if s = &next; list {
			if s.Items == nil || s.Items.Schema == nil {
				return nil
			}
			s = s.Items.Schema
		}
	}
	return s
}

// The names, labels and scope by which the Cluster API and clusterctl find our kinds
// (book: contracts infra-cluster and infra-machine, "All resources: scope", "CRD name",
// "contract version"). Without the label the core refuses every Cluster.
func TestCRDNames(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := infrav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, c := range readCRDs(t) {
		status, ok := kinds()[kind]
		if !ok {
			t.Errorf("kind %s is none of ours", kind)
		}
		if want := contract.CalculateCRDName(infrav1.Group, kind); c.Name != want {
			t.Errorf("%s: named %s, the Cluster API looks for %s", kind, c.Name, want)
		}
		if got := c.Labels["cluster.x-k8s.io/v1beta2"]; got != "v1beta1" {
			t.Errorf("%s: label cluster.x-k8s.io/v1beta2 is %q", kind, got)
		}
		for l := range c.Labels {
			if strings.HasPrefix(l, "cluster.x-k8s.io/v1") && l != "cluster.x-k8s.io/v1beta2" {
				t.Errorf("%s: label %s claims a contract that is not kept", kind, l)
			}
		}
		if got := c.Labels[clusterv1.ProviderNameLabel]; got != "infrastructure-rackstrap" {
			t.Errorf("%s: label %s is %q", kind, clusterv1.ProviderNameLabel, got)
		}
		if c.Spec.Scope != apiextensionsv1.NamespaceScoped || c.Spec.Names.ListKind != kind+"List" || !slices.Contains(c.Spec.Names.Categories, "cluster-api") {
			t.Errorf("%s: scope %s, list kind %s, categories %v", kind, c.Spec.Scope, c.Spec.Names.ListKind, c.Spec.Names.Categories)
		}
		for _, k := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(infrav1.GroupVersion().WithKind(k)) {
				t.Errorf("no Go type for %s", k)
			}
		}
		if len(c.Spec.Versions) != 1 || c.Spec.Versions[0].Name != "v1beta1" || !c.Spec.Versions[0].Served || !c.Spec.Versions[0].Storage {
			t.Errorf("%s: versions %+v", kind, c.Spec.Versions)
		}
		if v := c.Spec.Versions[0]; (v.Subresources != nil && v.Subresources.Status != nil) != status {
			t.Errorf("%s: has a status: %v, want %v", kind, !status, status)
		} else if status && len(v.AdditionalPrinterColumns) < 2 {
			t.Errorf("%s: kubectl get shows nothing", kind)
		}
	}
}

// The fields of the contract, each where the core reads it with its path.
func TestCRDFields(t *testing.T) {
	t.Parallel()
	crds := readCRDs(t)
	for _, tc := range []struct {
		kind, path, want string
		max              int64 // length, or entries of a list; 0 is not looked at
	}{
		{"RackstrapCluster", "spec.controlPlaneEndpoint.host", "string", 512},
		{"RackstrapCluster", "spec.controlPlaneEndpoint.port", "integer", 0},
		{"RackstrapCluster", "status.initialization.provisioned", "boolean", 0},
		{"RackstrapCluster", "status.failureDomains", "array", 100},
		{"RackstrapCluster", "status.failureDomains[].name", "string", 256},
		{"RackstrapCluster", "status.failureDomains[].controlPlane", "boolean", 0},
		{"RackstrapCluster", "status.failureDomains[].attributes", "object", 0},
		{"RackstrapCluster", "status.conditions", "array", 32},
		{"RackstrapMachine", "spec.providerID", "string", 512},
		{"RackstrapMachine", "status.initialization.provisioned", "boolean", 0},
		{"RackstrapMachine", "status.failureDomain", "string", 256},
		{"RackstrapMachine", "status.addresses", "array", 128},
		{"RackstrapMachine", "status.addresses[].type", "string", 0},
		{"RackstrapMachine", "status.addresses[].address", "string", 256},
		{"RackstrapMachine", "status.conditions", "array", 32},
		{"RackstrapMachineTemplate", "spec.template.spec", "object", 0},
		{"RackstrapMachineTemplate", "spec.template.metadata.labels", "object", 0},
		{"RackstrapMachineTemplate", "spec.template.metadata.annotations", "object", 0},
		{"RackstrapMachineTemplate", "status.capacity", "object", 0},
		{"RackstrapMachineTemplate", "status.nodeInfo.architecture", "string", 0},
		{"RackstrapMachineTemplate", "status.nodeInfo.operatingSystem", "string", 0},
		{"RackstrapClusterTemplate", "spec.template.spec", "object", 0},
		{"RackstrapClusterTemplate", "spec.template.metadata.labels", "object", 0},
		{"RackstrapRemediation", "status.conditions", "array", 32},
		{"RackstrapRemediationTemplate", "spec.template.spec", "object", 0},
	} {
		s := at(crds[tc.kind].Spec.Versions[0].Schema.OpenAPIV3Schema, tc.path)
		if s == nil || s.Type != tc.want {
			t.Errorf("%s: %s is not there as %s", tc.kind, tc.path, tc.want)
			continue
		}
		limit := s.MaxLength
		if tc.want == "array" {
			limit = s.MaxItems
		}
		if tc.max > 0 && (limit == nil || *limit > tc.max) {
			t.Errorf("%s: %s takes more than %d", tc.kind, tc.path, tc.max)
		}
		if strings.HasSuffix(tc.path, ".conditions") && (s.XListType == nil || *s.XListType != "map" || !slices.Equal(s.XListMapKeys, []string{"type"})) {
			t.Errorf("%s: %s is no map by type: two writers would overwrite each other", tc.kind, tc.path)
		}
		if strings.HasSuffix(tc.path, ".failureDomains") && (s.XListType == nil || *s.XListType != "map" || !slices.Equal(s.XListMapKeys, []string{"name"})) {
			t.Errorf("%s: %s is no map by name", tc.kind, tc.path)
		}
	}
	for kind, c := range crds {
		for path, why := range map[string]string{
			"spec.failureDomain":               "the core would copy it over the Machine's own",
			"spec.template.spec.failureDomain": "the core would copy it over the Machine's own",
			"status.ready":                     "it belongs to contract v1beta1",
			"status.failureReason":             "nobody reads it any more",
			"status.failureMessage":            "nobody reads it any more",
			"status.v1beta2":                   "it belongs to contract v1beta1",
		} {
			if at(c.Spec.Versions[0].Schema.OpenAPIV3Schema, path) != nil {
				t.Errorf("%s: there is %s: %s", kind, path, why)
			}
		}
	}
}

// Whoever patches conditions with the Cluster API's helpers needs both interfaces.
func TestConditionTypes(t *testing.T) {
	t.Parallel()
	want := []metav1.Condition{{Type: clusterv1.ReadyCondition}}
	for _, o := range []conditions.Setter{&infrav1.RackstrapCluster{}, &infrav1.RackstrapMachine{}, &infrav1.RackstrapMachineTemplate{}, &infrav1.RackstrapRemediation{}} {
		o.SetConditions(want)
		if got := o.GetConditions(); !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %v", o, got)
		}
	}
}

// What is committed is what the types say.
func TestGeneratedFiles(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "../../../deploy/capi/generate", out)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("deploy/capi/generate: %v: %s", err, said)
	}
	made, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(kinds())+1 {
		t.Errorf("%d files were generated, want a CRD for each kind and the deep copies", len(made))
	}
	for _, f := range made {
		committed := filepath.Join(crdDir, f.Name())
		if strings.HasSuffix(f.Name(), ".go") {
			committed = f.Name()
		}
		want, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(committed)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types say (err %v); run: make capi-generate", committed, err)
		}
	}
}
