package rest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// The examples are taken as they are, a rule may be called as the route is, and what is
// tried is not kept.
func TestRules(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "site=x")
	h, err := g.db.HardwareByName(t.Context(), "m1")
	g.must(err)
	m, err := g.db.Machine(t.Context(), h.Meta.UID)
	g.must(err)
	m.Status.State = hardware.StatePending
	g.must(g.db.Commit(t.Context(), &workflow.Change{Machine: m, Facts: &hardware.Facts{
		Vendor: "Dell Inc.", Product: "PowerEdge R640", Disks: []hardware.DiskFact{{Path: "/dev/nvme0n1", Bytes: 1e12, Transport: "nvme"}},
	}}))
	examples, err := os.ReadFile("../../deploy/examples/rules.yaml")
	g.must(err)
	if status, text := g.ask(g.sock, "POST", api.Base+"/apply", "", string(examples)); status != http.StatusOK {
		t.Fatalf("the examples: %d %s", status, text)
	}
	viewer := g.token("v", hardware.TokenSpec{Role: hardware.RoleViewer})
	status, text := g.ask(g.url, "POST", api.Base+"/rules/test", viewer, `
rule:
  apiVersion: rackstrap/v1
  kind: Rule
  metadata: {name: dell-workers}
  spec: {match: {selector: "disk=flash,site=x"}, labels: {role: storage}}
`)
	var got api.RulesTested
	if status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil || len(got.Machines) != 1 {
		t.Fatalf("test: %d %s", status, text)
	}
	v := got.Machines[0].Verdict
	if !slices.Equal(v.Rules, []string{"flash", "dell-workers", "not-by-itself"}) || v.Labels["role"] != "storage" || v.Accept {
		t.Errorf("the rule that is not saved: %+v", v)
	}
	if status, text := g.ask(g.url, "GET", api.Base+"/rules/dell-workers", viewer, ""); status != http.StatusOK || !strings.Contains(text, `"accept":true`) {
		t.Errorf("it was saved: %d %s", status, text)
	}
	if status, text := g.ask(g.sock, "POST", api.Base+"/rules", "", `{"metadata": {"name": "test"}, "spec": {"match": {"all": true}, "accept": true}}`); status != http.StatusCreated {
		t.Errorf("a rule called test: %d %s", status, text)
	}
	if status, text := g.ask(g.url, "GET", api.Base+"/rules/test", viewer, ""); status != http.StatusOK {
		t.Errorf("a rule called test: %d %s", status, text)
	}
	for _, tc := range []struct {
		body, want string
		status     int
	}{
		{`{"rule": {"metadata": {"name": "x"}, "spec": {}}}`, "asks for nothing", 422},
		{`{"rule": {"kind": "Subnet", "metadata": {"name": "x"}}}`, "wanted Rule", 422},
		{`{"rule": {"metadata": {"name": "x"}, "spec": {"mach": {}}}}`, "did you mean match?", 422},
		{`{"hardware": ["m2"]}`, "m1", 404},
		{`{"selector": "a in b"}`, "at character 6", 400},
		{`[]`, "wanted a map", 422},
	} {
		if status, text := g.ask(g.url, "POST", api.Base+"/rules/test", viewer, tc.body); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %d %s", tc.body, status, text)
		}
	}
}
