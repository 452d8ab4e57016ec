package rest_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
	"github.com/rackstrap/rackstrap/hardware"
)

// operation is one of the document.
type operation struct {
	method, path string
	*openapi.Operation
}

// operations are those of the served document: what reads first, what deletes last,
// so that the world is there for those in between.
func operations(t *testing.T, raw string) []operation {
	t.Helper()
	var d openapi.Document
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		t.Fatal(err)
	}
	var out []operation
	for path, methods := range d.Paths {
		for method, op := range methods {
			out = append(out, operation{strings.ToUpper(method), path, op})
		}
	}
	methods := []string{"GET", "PUT", "PATCH", "POST", "DELETE"}
	order := func(o operation) int {
		if o.path == api.Base+"/claims/{name}/release" {
			return slices.Index(methods, "DELETE") // it is the long form of one
		}
		return slices.Index(methods, o.method)
	}
	slices.SortFunc(out, func(a, b operation) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.path, b.path))
	})
	if len(out) < 40 {
		t.Fatalf("the document has %d operations only", len(out))
	}
	return out
}

// at is the operation's path with a name that is there.
func (o operation) at(machine string) string {
	path := o.path
	for prefix, name := range map[string]string{
		"/hardware/": machine, "/subnets/": "lan", "/templates/": "install", "/images/": "debian", "/workflows/": "w-" + machine,
		"/claims/": "c-" + machine, "/rules/": "flash", "/tokens/": "expendable", "/issues/": machine,
	} {
		if strings.HasPrefix(path, api.Base+prefix) {
			path = strings.ReplaceAll(path, "{name}", name)
			path = strings.ReplaceAll(path, "{id}", name)
			path = strings.NewReplacer("{index}", "0", "{number}", "1").Replace(path)
		}
	}
	return path
}

// held is a world with two machines that two owners hold, and their workflows.
func held(t *testing.T) *rig {
	t.Helper()
	g := newRig(t)
	g.machine(1, "mine", "team=a")
	g.machine(2, "theirs", "team=b")
	for _, m := range []string{"mine", "theirs"} {
		if status, text := g.ask(g.sock, "POST", api.Base+"/hardware/"+m+"/accept", "", "{}"); status != http.StatusOK {
			t.Fatalf("accept: %d %s", status, text)
		}
	}
	g.claim("c-mine", "a/web", "mine")
	g.claim("c-theirs", "b/web", "theirs")
	status, text := g.ask(g.sock, "POST", api.Base+"/apply", "", `
kind: Subnet
metadata: {name: lan}
spec: {prefix: 10.0.0.0/24}
---
kind: Template
metadata: {name: install}
spec: {actions: [{name: restart, kind: reboot}]}
---
kind: Rule
metadata: {name: flash}
spec: {match: {facts: {diskTransport: nvme}}, labels: {disk: flash}}
---
kind: Workflow
metadata: {name: w-mine}
spec: {hardware: mine, template: install, claim: c-mine}
---
kind: Workflow
metadata: {name: w-theirs}
spec: {hardware: theirs, template: install, claim: c-theirs}
`)
	if status != http.StatusOK {
		t.Fatalf("apply: %d %s", status, text)
	}
	g.token("expendable", hardware.TokenSpec{Role: hardware.RoleViewer})
	return g
}

// who is one kind of caller and what it gets of an operation.
type who struct {
	name  string
	token func(*rig) string
	// machine is what it asks for.
	machine string
	want    func(operation) []int // one of these
}

const (
	fine      = 2   // a success, or an error of the request itself
	unknown   = 401 // exactly
	forbidden = 403 // exactly
	hidden    = 404 // exactly
)

func callers() []who {
	role := func(r hardware.Role) func(operation) []int {
		return func(o operation) []int {
			if o.Role == "" || r.Includes(hardware.Role(o.Role)) {
				return []int{fine}
			}
			return []int{forbidden}
		}
	}
	stranger := func(o operation) []int {
		if o.Role == "" {
			return []int{fine}
		}
		return []int{unknown}
	}
	make1 := func(spec hardware.TokenSpec) func(*rig) string {
		return func(g *rig) string { return g.token("t", spec) }
	}
	own := func(o operation) []int {
		switch {
		case o.Role == "" || o.Claimer:
			return []int{fine}
		}
		return []int{forbidden}
	}
	foreign := func(o operation) []int {
		switch object := strings.HasPrefix(o.path, api.Base+"/hardware/{") || strings.HasPrefix(o.path, api.Base+"/claims/{") || strings.HasPrefix(o.path, api.Base+"/workflows/{"); {
		case o.Role != "" && !o.Claimer:
			return []int{forbidden}
		case object:
			return []int{forbidden, hidden}
		}
		return []int{fine}
	}
	looker := func(o operation) []int {
		switch want := foreign(o); {
		case o.path == api.Base+"/hardware/{name}" && o.method == "GET", o.path == api.Base+"/hardware/{name}/claim":
			return []int{fine}
		case o.Claimer && o.method != "GET" && strings.HasPrefix(o.path, api.Base+"/hardware/{"):
			return []int{forbidden}
		case o.Claimer && o.method == "GET" && strings.HasPrefix(o.path, api.Base+"/hardware/{"):
			return []int{fine, forbidden} // what happens to it is another's business, what is in it is not
		default:
			return want
		}
	}
	claimer := hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"}
	return []who{
		{"no token", func(*rig) string { return "" }, "mine", stranger},
		{"malformed token", func(*rig) string { return "hunter2" }, "mine", stranger},
		{"wrong token", func(*rig) string { s, _ := hardware.NewTokenSecret(); return s }, "mine", stranger},
		{"right id, wrong secret", func(g *rig) string {
			s := g.token("t", hardware.TokenSpec{Role: hardware.RoleAdmin})
			last := "a"
			if strings.HasSuffix(s, "a") {
				last = "b"
			}
			return s[:len(s)-1] + last
		}, "mine", stranger},
		{"expired token", func(g *rig) string {
			s := g.token("t", hardware.TokenSpec{Role: hardware.RoleAdmin, Expires: g.now().Add(time.Minute)})
			g.pass(time.Minute)
			return s
		}, "mine", stranger},
		{"revoked token", func(g *rig) string {
			s := g.token("t", hardware.TokenSpec{Role: hardware.RoleAdmin})
			g.must(g.db.DeleteToken(g.t.Context(), "t", 0))
			return s
		}, "mine", stranger},
		{"viewer", make1(hardware.TokenSpec{Role: hardware.RoleViewer}), "mine", role(hardware.RoleViewer)},
		{"operator", make1(hardware.TokenSpec{Role: hardware.RoleOperator}), "mine", role(hardware.RoleOperator)},
		{"admin", make1(hardware.TokenSpec{Role: hardware.RoleAdmin}), "mine", role(hardware.RoleAdmin)},
		{"claimer, own", make1(claimer), "mine", own},
		{"claimer, foreign", make1(claimer), "theirs", foreign},
		{"claimer that sees and does not hold", make1(hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/"}), "theirs", looker},
	}
}

// Every operation of the document, asked by every kind of caller. It is made from
// the document, so that a route that is added is asked too.
func TestEveryOperationByEveryCaller(t *testing.T) {
	t.Parallel()
	for _, c := range callers() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := held(t)
			token := c.token(g)
			_, doc := g.ask(g.url, "GET", "/openapi.json", "", "")
			for _, o := range operations(t, doc) {
				body := ""
				if o.RequestBody != nil {
					body = "{}"
				}
				status, text := g.ask(g.url, o.method, o.at(c.machine), token, body)
				want := c.want(o)
				ok := slices.Contains(want, status)
				if !ok && slices.Contains(want, fine) {
					ok = status != 401 && status != 403 && status != 429 && (status < 500 || strings.Contains(text, string(api.CodeUnavailable)))
				}
				// a flood from one address is answered with less; that is no pass
				if slices.Contains(want, unknown) && status == http.StatusTooManyRequests && c.name != "no token" {
					ok = true
					g.pass(time.Hour)
				}
				if o.method == "GET" && (c.name == "admin" || c.name == "claimer, own" && o.Claimer) && !strings.HasPrefix(o.path, api.Base+"/images/") && !strings.HasSuffix(o.path, "/log") { // nothing ran: TestAttemptLogRoles
					ok = status == http.StatusOK || o.path == "/metrics"
				}
				if !ok {
					t.Errorf("%s %s: %d, want %v: %.300s", o.method, o.path, status, want, text)
				}
				if strings.Contains(text, "theirs") && c.name == "claimer, foreign" && o.method == "GET" && strings.HasPrefix(text, `{"apiVersion`) {
					t.Errorf("%s %s shows another's machine: %.300s", o.method, o.path, text)
				}
				if token != "" && strings.Contains(text, token) {
					t.Errorf("%s %s repeats the token", o.method, o.path)
				}
				if status == 401 || status == 403 {
					var p api.Problem
					if json.Unmarshal([]byte(text), &p) != nil || p.Hint == "" && p.Detail == "" || !slices.Contains(api.Codes(), p.Code) {
						t.Errorf("%s %s: no problem: %s", o.method, o.path, text)
					}
				}
			}
		})
	}
}

// Every route says who may use it; what is for everybody is listed here.
func TestEveryOperationHasARole(t *testing.T) {
	t.Parallel()
	public := []string{"get /docs", "get /docs/problems", "get /openapi.json", "post /api/v1/session"}
	d := rest.Document("test")
	reads := map[string]bool{} // a question that is too long for a URL
	for _, r := range rest.Routes() {
		reads[strings.ToLower(r.Method)+" "+api.Base+r.Path] = r.Method == http.MethodGet || r.Reads
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for method, op := range d.Paths[path] {
			known := slices.Contains(hardware.Roles(), hardware.Role(op.Role)) && op.Role != string(hardware.RoleClaimer)
			if known == slices.Contains(public, method+" "+path) {
				t.Errorf("%s %s: role %q", method, path, op.Role)
			}
			if method != "get" && !reads[method+" "+path] && op.Role == string(hardware.RoleViewer) {
				t.Errorf("%s %s changes something, and a viewer may", method, path)
			}
		}
	}
	for _, r := range rest.Routes() {
		if d.Paths[api.Base+r.Path][strings.ToLower(r.Method)] == nil {
			t.Errorf("%s %s is not in the document", r.Method, r.Path)
		}
	}
}
