package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// claimDesk is the API over the real store and engine, asked by several callers.
type claimDesk struct {
	t   *testing.T
	api *API
	db  *store.DB
	// leases of DHCP.
	leases store.Leases
	// audited are the changes that were told to the event log.
	audited []string
}

func newClaimDesk(t *testing.T, machines ...*hardware.Hardware) *claimDesk {
	t.Helper()
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kv.Close() })
	d := &claimDesk{t: t, leases: kv.Leases()}
	if d.db, err = store.Open(t.Context(), kv, filepath.Join(dir, "key"), store.Options{Leases: kv.Leases()}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	engine := workflow.NewEngine(workflow.Config{
		Store: d.db, Templates: d.db.TemplateByName, HardwareByName: d.db.HardwareByName, TokenKey: make([]byte, 32), Now: time.Now, Log: log, Note: func(workflow.Event) {},
	})
	d.api = New(Deps{Records: d.db, Engine: engine, Now: time.Now, Log: log, Audit: func(_ context.Context, ev workflow.Event) error {
		d.audited = append(d.audited, ev.Detail)
		return nil
	}})
	for i, h := range machines {
		h.Spec.Interfaces = []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, byte(i)}}}
		if err := d.db.CreateHardware(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func named(name, team string) *hardware.Hardware {
	return &hardware.Hardware{Meta: hardware.Meta{Name: name, Labels: map[string]string{"team": team}}}
}

// ask makes a request and reads the answer into out.
func (d *claimDesk) ask(c Caller, request, body string, out any) int {
	d.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequestWithContext(d.t.Context(), method, api.Base+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	d.api.serveAs(c, w, r)
	if out != nil {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			d.t.Errorf("%s: %v: %s", request, err, w.Body)
		}
	}
	return w.Code
}

func claimerOf(t *testing.T, prefix, selector string) Caller {
	t.Helper()
	s, err := hardware.ParseSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return Caller{Name: "ci", Role: RoleClaimer, OwnerPrefix: prefix, Selector: s}
}

// TestClaimAnswers: status, code and hint of each way a claim can end.
func TestClaimAnswers(t *testing.T) {
	t.Parallel()
	d := newClaimDesk(t, named("m1", "blue"))
	admin := socketCaller()
	const spec = `{"metadata":{"name":"c1"},"spec":{"owner":"team/a"}}`
	for i, r := range []struct {
		request, body string
		status        int
		code          api.Code
		has           string
	}{
		{"POST /claims", ``, 400, api.CodeBadRequest, "0 documents"},
		{"POST /claims", `{"metadata":{"name":"c1"},"spec":{"ownr":"x"}}`, 422, api.CodeInvalid, "owner"},
		{"POST /claims", `{"spec":{"owner":"x"}}`, 422, api.CodeInvalid, "choose an id of your own"},
		{"POST /claims", `{"kind":"Hardware","metadata":{"name":"c1"},"spec":{"owner":"x"}}`, 422, api.CodeInvalid, "wanted Claim"},
		{"POST /claims", spec, 201, "", `"hardware":"m1"`},
		{"POST /claims", spec, 200, "", `"hardware":"m1"`},
		{"POST /claims", "kind: Claim\nmetadata: {name: c1}\nspec: {owner: team/a}\nstatus: {hardware: else}\n", 200, "", `"hardware":"m1"`},
		{"POST /claims", `{"metadata":{"name":"c1"},"spec":{"owner":"team/b"}}`, 409, api.CodeConflict, "spec.owner"},
		{"POST /claims", `{"metadata":{"name":"c2"},"spec":{"owner":"team/b","selector":"team=blue"}}`, 409, api.CodeNoCandidate, `rackstrap claim explain --owner team/b -l team=blue`},
		{"POST /claims", `{"metadata":{"name":"c2"},"spec":{"owner":"team/b"}}`, 409, api.CodeNoCandidate, `"against":{"claimed":1}`},
		{"POST /claims", `{"metadata":{"name":"c2"},"spec":{"owner":"team/b","hardware":"m2"}}`, 404, api.CodeNotFound, `did you mean m1`},
		{"POST /hardware/m1/claim", `{"claim":"c2","owner":"team/b"}`, 409, api.CodeNoCandidate, "claimed by team/a (claim c1)"},
		{"POST /hardware/m2/claim", `{"claim":"c2","owner":"team/b"}`, 404, api.CodeNotFound, "did you mean m1"},
		{"POST /hardware/m1/claim", `{"claim":"c2","owner":"team/b","force":true}`, 422, api.CodeInvalid, "force"},
		{"POST /claims/explain", `{"spec":{}}`, 200, "", "no machine fits; of 1: 1 claimed"},
		{"GET /claims/c1/explain", ``, 200, "", "the claim has m1; 1 of 1 machines fit"},
		{"GET /claims?active=maybe", ``, 400, api.CodeBadRequest, "active"},
		{"GET /claims?owners=x", ``, 400, api.CodeBadRequest, "owner"},
		{"GET /claims?active=true&owner=team&hardware=m1", ``, 200, "", `"total":1`},
		{"GET /claims?active=false", ``, 200, "", `"items":[]`},
		{"GET /claims?owner=te", ``, 200, "", `"items":[]`},
		{"GET /claims/c1", ``, 200, "", `"providerID":"rackstrap://`},
		{"GET /claims/c2", ``, 404, api.CodeNotFound, "did you mean c1"},
		{"DELETE /claims/c2", ``, 404, api.CodeNotFound, "there is no claim"},
		{"DELETE /claims/c1", ``, 200, "", `"ended":"`},
		{"DELETE /claims/c1", ``, 200, "", `"ended":"`},
		{"POST /claims", spec, 409, api.CodeClaimEnded, "it had hardware"},
		{"POST /hardware/m1/claim", `{"claim":"c2","owner":"team/b","labels":{"a":"b"}}`, 201, "", `"labels":{"a":"b"}`},
		{"DELETE /claims/c1", ``, 200, "", `"ended":"`}, // a late one does not touch the next owner
		{"GET /claims/c2", ``, 200, "", `"hardware":"m1"`},
	} {
		var p api.Problem
		method, path, _ := strings.Cut(r.request, " ")
		req := httptest.NewRequestWithContext(t.Context(), method, api.Base+path, strings.NewReader(r.body))
		w := httptest.NewRecorder()
		d.api.serveAs(admin, w, req)
		if w.Code >= 400 {
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Errorf("%d %s: %v", i, r.request, err)
			}
		}
		if w.Code != r.status || p.Code != r.code || !strings.Contains(w.Body.String(), r.has) {
			t.Errorf("%d %s %s\n got %d %s\nwant %d %s %s", i, r.request, r.body, w.Code, w.Body, r.status, r.code, r.has)
		}
	}
	for _, a := range d.audited {
		if strings.Contains(a, "explain") {
			t.Errorf("a question is told as a change: %s", a)
		}
	}
	if len(d.audited) != 7 {
		t.Errorf("changes that were told: %q", d.audited)
	}
	if h, err := d.db.HardwareByName(t.Context(), "m1"); err != nil || h.Status.Claim == nil || h.Status.Claim.ID != "c2" {
		t.Errorf("the machine has %+v, %v", h.Status.Claim, err)
	}
}

// TestClaimers: a claimer gets machines within its selector for owners within its
// prefix, and neither sees nor ends what is another's.
func TestClaimers(t *testing.T) {
	t.Parallel()
	d := newClaimDesk(t, named("b1", "blue"), named("b2", "blue"), named("r1", "red"))
	blue, red := claimerOf(t, "blue/", "team=blue"), claimerOf(t, "red/", "team=red")
	operator, viewer := Caller{Name: "op", Role: RoleOperator}, Caller{Name: "view", Role: RoleViewer}
	claim := func(id, owner, more string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"owner":%q%s}}`, id, owner, more)
	}
	for i, r := range []struct {
		who           Caller
		request, body string
		status        int
		has           string
	}{
		{viewer, "POST /claims", claim("v1", "blue/x", ""), 403, "needs the role operator"},
		{viewer, "POST /claims/explain", `{"spec":{"selector":"team=red"}}`, 200, "1 of 3 machines fit; r1 would be taken"},
		{blue, "POST /claims", claim("c1", "red/x", ""), 403, "use an owner that begins with blue/"},
		{blue, "POST /claims/explain", `{"spec":{"owner":"red/x"}}`, 403, "blue/"},
		{blue, "POST /claims/explain", `{}`, 200, "2 of 2 machines fit"},
		{blue, "POST /claims", claim("c1", "blue/x", `,"selector":"team=red"`), 409, "of 2: 2 with other labels"},
		{blue, "POST /claims", claim("c1", "blue/x", `,"hardware":"r1"`), 404, "there is no hardware"},
		{blue, "POST /hardware/r1/claim", `{"claim":"c1","owner":"blue/x"}`, 404, "there is no hardware"},
		{blue, "POST /claims", claim("c1", "blue/x", ""), 201, `"hardware":"b`},
		{blue, "POST /claims", claim("c2", "blue/y", ""), 201, `"hardware":"b`},
		{blue, "POST /claims", claim("c3", "blue/z", ""), 409, "of 2: 2 claimed"},
		{red, "GET /claims/c1", "", 404, "there is no claim"},
		{red, "GET /claims/c1/explain", "", 404, "there is no claim"},
		{red, "DELETE /claims/c1", "", 404, "there is no claim"},
		{red, "GET /claims", "", 200, `"items":[]`},
		{red, "POST /claims", claim("c1", "red/x", ""), 409, "another spec.owner"},
		{viewer, "GET /claims", "", 200, `"total":2`},
		{viewer, "DELETE /claims/c1", "", 403, "operator"},
		{blue, "GET /claims", "", 200, `"total":2`},
		{blue, "DELETE /claims/c1", "", 200, `"ended":"`},
		{operator, "DELETE /claims/c2", "", 200, `"ended":"`},
		{operator, "POST /claims", claim("o1", "green", `,"selector":"team=red"`), 201, `"hardware":"r1"`},
	} {
		var got json.RawMessage
		if status := d.ask(r.who, r.request, r.body, &got); status != r.status || !strings.Contains(string(got), r.has) {
			t.Errorf("%d %s: %s %s\n got %d %s\nwant %d %s", i, r.who.Name, r.request, r.body, status, got, r.status, r.has)
		}
	}
}

// A claim that was given up before its request arrived takes no machine when it does.
func TestLateClaimTakesNothing(t *testing.T) {
	t.Parallel()
	d := newClaimDesk(t, named("b1", "blue"))
	blue, red := claimerOf(t, "blue/", "team=blue"), claimerOf(t, "red/", "team=red")
	claim := func(id, owner string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"owner":%q,"selector":"team=blue"}}`, id, owner)
	}
	for i, r := range []struct {
		who           Caller
		request, body string
		status        int
		has           string
	}{
		{blue, "POST /claims/c1/release", `{}`, 404, "there is no claim"},
		{blue, "POST /claims/c1/release", `{"owner":"red/x"}`, 403, "blue/"},
		{blue, "POST /claims/C1/release", `{"owner":"blue/x"}`, 422, "metadata.name"},
		{blue, "POST /claims/c1/release", `{"owner":"blue/x"}`, 200, `"by":"never-ran"`},
		{blue, "POST /claims/c1/release", `{"owner":"blue/x"}`, 200, `"by":"never-ran"`},
		{blue, "POST /claims", claim("c1", "blue/x"), 409, "c1"},
		{blue, "GET /claims/c1", "", 200, `"ended":"`},
		{red, "POST /claims/c1/release", `{"owner":"red/x"}`, 404, "there is no claim"},
		{blue, "POST /claims", `{"metadata":{"name":"c1"},"spec":{"owner":"blue/x"}}`, 409, "before it was made"},
		{blue, "GET /hardware?claimed=true", "", 200, `"items":[]`},
		{blue, "POST /claims", claim("c2", "blue/x"), 201, `"hardware":"b1"`},
		{red, "POST /claims/c2/release", `{"owner":"red/x"}`, 404, "there is no claim"},
		{blue, "GET /claims/c2", "", 200, `"hardware":"b1"`},
		{blue, "POST /claims/c2/release", `{"owner":"blue/x"}`, 200, `"hardware":"b1"`},
	} {
		var got json.RawMessage
		if status := d.ask(r.who, r.request, r.body, &got); status != r.status || !strings.Contains(string(got), r.has) {
			t.Errorf("%d %s: %s %s\n got %d %s\nwant %d %s", i, r.who.Name, r.request, r.body, status, got, r.status, r.has)
		}
	}
}

// A claimer sees the addresses of the machines that it holds, and of no others.
func TestClaimerLeases(t *testing.T) {
	t.Parallel()
	d := newClaimDesk(t, named("b1", "blue"), named("b2", "blue"), named("r1", "red"))
	blue := claimerOf(t, "blue/", "team=blue")
	for i := range 4 { // the last one is nobody's
		l := hardware.Lease{MAC: hardware.MAC{2, 0, 0, 0, 0, byte(i)}, Subnet: "lan", Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)}), Expires: time.Now().Add(time.Hour)}
		if err := d.leases.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	list := func(who Caller) string {
		var got api.List[api.Lease]
		if status := d.ask(who, "GET /leases", "", &got); status != 200 {
			t.Errorf("%s: %d", who.Name, status)
		}
		out := ""
		for _, l := range got.Items {
			out += l.Addr.String() + " "
		}
		return out
	}
	if got := list(blue); got != "" {
		t.Errorf("before the claim: %s", got)
	}
	d.ask(blue, "POST /claims", `{"metadata":{"name":"c1"},"spec":{"owner":"blue/x","hardware":"b2"}}`, nil)
	if got := list(blue); got != "10.0.0.11 " {
		t.Errorf("of b2: %s", got)
	}
	if got := list(Caller{Name: "view", Role: RoleViewer}); strings.Count(got, " ") != 4 {
		t.Errorf("viewer: %s", got)
	}
}

// TestReleaseClaim: what a release may say, who may say it, and that it is said once.
func TestReleaseClaim(t *testing.T) {
	t.Parallel()
	d := newClaimDesk(t, named("b1", "blue"), named("b2", "blue"), named("r1", "red"))
	blue, red := claimerOf(t, "blue/", "team=blue"), claimerOf(t, "red/", "")
	operator, viewer := Caller{Name: "op", Role: RoleOperator}, Caller{Name: "view", Role: RoleViewer}
	claim := func(id, owner, more string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"owner":%q%s}}`, id, owner, more)
	}
	for i, r := range []struct {
		who           Caller
		request, body string
		status        int
		has           string
	}{
		{blue, "POST /claims", claim("c1", "blue/x", `,"hardware":"b1"`), 201, `"hardware":"b1"`},
		{viewer, "POST /claims/c1/release", `{}`, 403, "operator"},
		{red, "POST /claims/c1/release", `{}`, 404, "there is no claim"},
		{blue, "POST /claims/c2/release", `{}`, 404, "there is no claim"},
		{blue, "POST /claims/c1/release", `{"reserve":{"for":"red/x"}}`, 403, "use a group that begins with blue/"},
		{blue, "POST /claims/c1/release", `{"reserve":{"for":""}}`, 422, "reserve.for"},
		{blue, "POST /claims/c1/release", `{"reserve":{"for":"blue/x","within":"25h"}}`, 422, "wanted up to 24h0m0s"},
		{blue, "POST /claims/c1/release", `{"reserve":{"for":"blue/x","within":"soon"}}`, 422, "within"},
		{blue, "POST /claims/c1/release", `{"reserve":{"for":"blue/x"},"unhealthy":"slow"}`, 422, "leave out one of the two"},
		{blue, "POST /claims/c1/release", `{"unhealthy":"` + strings.Repeat("x", 513) + `"}`, 422, "the limit is 512"},
		{blue, "POST /claims/c1/release", `{"keep":true}`, 422, "keep"},
		{blue, "GET /claims/c1", ``, 200, `"status":{"hardware":"b1"`},
		{blue, "POST /claims/c1/release", `{"reserve":{"for":"blue/x"},"reason":"rolled"}`, 200, `"stopped":{"at":"`},
		{blue, "POST /claims/c1/release", `{"unhealthy":"later"}`, 200, `"by":"never-ran"`}, // it has ended: nothing changes
		{blue, "DELETE /claims/c1", ``, 200, `"by":"never-ran"`},
		{operator, "GET /hardware/b1", ``, 200, `"reserved":{"for":"blue/x","until":"`},
		{red, "POST /claims", claim("r1", "red/x", `,"reuse":"blue/x"`), 403, "use a group that begins with red/"},
		{red, "POST /claims/explain", `{"spec":{"reuse":"blue/x"}}`, 403, "use a group that begins with red/"},
		{red, "POST /claims", claim("r1", "red/x", `,"hardware":"b1"`), 409, "kept for claims of blue/x until"},
		{blue, "POST /claims/explain", `{"spec":{"reuse":"blue/x","prefer":[{"selector":"team","weight":1}]}}`, 200, "b1 would be taken"},
		{blue, "POST /claims", claim("c2", "blue/y", `,"reuse":"blue/x"`), 201, `"hardware":"b1"`},
		{blue, "POST /claims", claim("c3", "blue/z", `,"reuse":"blue/x"`), 201, `"hardware":"b2"`}, // there is none left
		{blue, "POST /claims/c2/release", `{"unhealthy":"it is slow"}`, 200, `"ended":"`},
		{operator, "GET /hardware/b1", ``, 200, `"unhealthy":"it is slow"`},
		{blue, "POST /claims", claim("c4", "blue/x", ``), 409, "1 quarantined"},
		{operator, "POST /claims", claim("o1", "green", `,"failureDomainPreferred":true`), 422, "spec.failureDomainPreferred is true"},
		{operator, "POST /claims", claim("o1", "green", `,"failureDomain":"a9","failureDomainPreferred":true`), 201, `"hardware":"r1"`},
	} {
		var got json.RawMessage
		if status := d.ask(r.who, r.request, r.body, &got); status != r.status || !strings.Contains(string(got), r.has) {
			t.Errorf("%d %s: %s %s\n got %d %s\nwant %d %s", i, r.who.Name, r.request, r.body, status, got, r.status, r.has)
		}
	}
}
