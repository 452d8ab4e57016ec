package client_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// fleet is n machines in racks of ten, the third of every rack on hold, the fifth
// provisioned, the seventh claimed.
func (d *daemon) fleet(n int) {
	d.t.Helper()
	ctx := d.t.Context()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\nkind: Hardware\nmetadata: {name: m%03d, labels: {rack: r%d, tier: %q}}\nspec: {assetTag: TAG-%d, interfaces: [{mac: '52:54:00:00:%02x:%02x', addresses: [10.1.%d.%d/8]}]}\n",
			i, i/10, []string{"prod", "test"}[i%2], i, i/256, i%256, i/250, i%250+1)
	}
	d.apply(b.String())
	for i := range n {
		h, err := d.db.HardwareByName(ctx, fmt.Sprintf("m%03d", i))
		d.must(err)
		m, err := d.db.Machine(ctx, h.Meta.UID)
		d.must(err)
		switch i % 10 {
		case 3:
			m.Status.Hold = true
		case 5:
			m.Status.State = hardware.StateProvisioned
		case 7:
			m.Status.Claim = &hardware.ClaimRef{ID: fmt.Sprint(i), Owner: "o"}
		default:
			continue
		}
		facts := &hardware.Facts{Serial: fmt.Sprintf("SER%d", i)}
		d.must(d.db.Commit(ctx, &workflow.Change{Machine: m, Facts: facts}))
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.fleet(40)
	ctx := t.Context()
	for _, tc := range []struct {
		o    client.ListOptions
		want string
	}{
		{client.ListOptions{Selector: "rack=r1,tier!=test"}, "m010 m012 m014 m016 m018"},
		{client.ListOptions{Selector: "rack in (r3),tier", Sort: "-name", Limit: 3}, "m039 m038 m037 +7"},
		{client.ListOptions{State: []string{"provisioned"}}, "m005 m015 m025 m035"},
		{client.ListOptions{State: []string{"provisioned", "pending"}, Selector: "rack=r2"}, "m025"},
		{client.ListOptions{More: url.Values{"hold": {"true"}}}, "m003 m013 m023 m033"},
		{client.ListOptions{More: url.Values{"hold": {"false"}, "claimed": {"true"}}}, "m007 m017 m027 m037"},
		{client.ListOptions{More: url.Values{"q": {"tag-31"}}}, "m031"},
		{client.ListOptions{More: url.Values{"q": {"52-54-00-00-00-0A"}}}, "m010"},
		{client.ListOptions{More: url.Values{"q": {"10.1.0.40"}}}, "m039"},
		{client.ListOptions{More: url.Values{"q": {"ser25"}}}, "m025"},
		{client.ListOptions{More: url.Values{"q": {"nothing"}}}, ""},
		{client.ListOptions{Sort: "-state", Limit: 4}, "m035 m025 m015 m005 +36"},
		{client.ListOptions{Sort: "created", Limit: 2}, "m000 m001 +38"},
	} {
		p, err := d.c.Hardware.Page(ctx, tc.o)
		d.must(err)
		var got []string
		for _, h := range p.Items {
			got = append(got, h.Meta.Name)
		}
		if p.Remaining > 0 {
			got = append(got, fmt.Sprintf("+%d", p.Remaining))
		}
		if strings.Join(got, " ") != tc.want || p.Total != len(p.Items)+p.Remaining {
			t.Errorf("%+v: got %v of %d, want %s", tc.o, got, p.Total, tc.want)
		}
	}
	for _, tc := range []struct{ path, want string }{
		{"hardware?selector=a=b=c", `at character 4`},
		{"hardware?state=broken", `one of pending, available`},
		{"hardware?sort=size", `one of created, name, rack, since, state`},
		{"hardware?sort=-", `is not known`},
		{"hardware?limit=x", `is no number`},
		{"hardware?limit=10001", `too large`},
		{"hardware?hold=perhaps", `neither true nor false`},
		{"hardware?slector=a", `parameters here: claimed, continue, hold, limit, maintenance, q, selector, sort, state`},
		{"hardware?selector=a&selector=b", `is there 2 times`},
		{"hardware?continue=eyJuIjoieCJ9", `does not belong to this list`},
		{"hardware?continue=%00", `does not belong to this list`},
		{"subnets?state=up", `state`},
		{"workflows?state=ended", `one of pending, running`},
		{"hardware/m001?limit=3", `this route takes no parameters`},
	} {
		if resp, text := d.raw("GET", api.Base+"/"+tc.path, "", ""); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %d %s, want %s", tc.path, resp.StatusCode, text, tc.want)
		}
	}
}

// Pages have every record once, whatever they are sorted by, though records come and
// go meanwhile.
func TestPagesAreStable(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.fleet(30)
	ctx := t.Context()
	for _, by := range []string{"", "-name", "state", "rack", "-created"} {
		seen := map[string]int{}
		n := 0
		for h, err := range d.c.Hardware.All(ctx, client.ListOptions{Sort: by, Limit: 4}) {
			d.must(err)
			seen[h.Meta.Name]++
			if n++; n%5 == 1 { // one in front, one behind, and both go again
				for _, name := range []string{"a", "z"} {
					_, err := d.c.Hardware.Create(ctx, &hardware.Hardware{Meta: hardware.Meta{Name: name}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, name[0]}}}}})
					d.must(err)
					if n%10 == 1 {
						d.must(d.c.Hardware.Delete(ctx, name, 0))
					}
				}
			} else if n%5 == 3 && n%10 != 3 {
				d.must(d.c.Hardware.Delete(ctx, "a", 0))
				d.must(d.c.Hardware.Delete(ctx, "z", 0))
			}
		}
		for i := range 30 {
			if name := fmt.Sprintf("m%03d", i); seen[name] != 1 {
				t.Errorf("sort %q: %s %d times", by, name, seen[name])
			}
		}
		for _, name := range []string{"a", "z"} {
			_ = d.c.Hardware.Delete(ctx, name, 0)
		}
	}
	// a cursor belongs to the list that it came from
	p, err := d.c.Hardware.Page(ctx, client.ListOptions{Limit: 4})
	d.must(err)
	_, err = d.c.Hardware.Page(ctx, client.ListOptions{Limit: 4, Sort: "-name", Continue: p.Continue})
	wantProblem(t, err, http.StatusBadRequest, api.CodeBadRequest, "does not belong to this list")
	p2, err := d.c.Hardware.Page(ctx, client.ListOptions{Limit: 100, Continue: p.Continue}) // another size is fine
	if err != nil || len(p2.Items) != 26 || p2.Continue != "" {
		t.Errorf("got %d, %v", len(p2.Items), err)
	}
}

// The other kinds have lists like it.
func TestListsOfOtherKinds(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack + "---\nkind: Subnet\nmetadata: {name: far, labels: {site: b}}\nspec: {prefix: 9.0.0.0/24}\n")
	ctx := t.Context()
	d.create("w1")
	_, err := d.c.CancelWorkflow(ctx, "w1", "")
	d.must(err)
	d.create("w2")
	for _, tc := range []struct{ path, want string }{
		{"subnets?sort=prefix", "far lan"},
		{"subnets?sort=-prefix&limit=1", "lan"},
		{"subnets?selector=site=b", "far"},
		{"templates?selector=!site", "install"},
		{"images", ""},
		{"workflows?state=pending", "w2"},
		{"workflows?state=pending,cancelled&sort=-created", "w2 w1"},
		{"workflows?hardware=m1&sort=-name", "w2 w1"},
		{"workflows?hardware=m2", ""},
	} {
		resp, text := d.raw("GET", api.Base+"/"+tc.path, "", "")
		var got []string
		for _, part := range strings.Split(text, `"metadata":{"name":"`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			got = append(got, name)
		}
		if resp.StatusCode != 200 || !slices.Equal(got, strings.Fields(tc.want)) {
			t.Errorf("%s: got %v, want %s: %s", tc.path, got, tc.want, text)
		}
	}
}
