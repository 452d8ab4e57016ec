package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// switched is a power controller that does what it is told.
type switched struct{}

func (switched) Do(_ context.Context, _ *hardware.Hardware, action, _ string) (workflow.PowerOutcome, error) {
	state := map[string]hardware.PowerState{"on": hardware.PowerOn, "cycle": hardware.PowerOn, "off": hardware.PowerOff}[action]
	return workflow.PowerOutcome{Driver: hardware.PowerWebhook, State: state}, nil
}

// rows reads summaries.
func (g *rig) rows(token, query string) api.List[api.HardwareSummary] {
	g.t.Helper()
	status, text := g.ask(g.url, "GET", api.Base+"/summaries?"+query, token, "")
	if status != http.StatusOK {
		g.t.Fatalf("%s: %d %s", query, status, text)
	}
	var out api.List[api.HardwareSummary]
	g.must(json.Unmarshal([]byte(text), &out))
	return out
}

// told waits for events that name a machine, and calls what at each until it is true.
type told struct {
	events chan api.Event
}

// follow reads the stream after a cursor.
func (g *rig) follow(token string, after uint64) *told {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), "GET", fmt.Sprintf("%s%s/events?after=%d", g.url, api.Base, after), nil)
	g.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	g.must(err)
	g.t.Cleanup(func() { _ = resp.Body.Close() })
	out := &told{events: make(chan api.Event, 10_000)}
	go func() {
		defer close(out.events)
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			data, ok := strings.CutPrefix(sc.Text(), "data: ")
			var e api.Event
			if ok && json.Unmarshal([]byte(data), &e) == nil && e.ID != "" {
				out.events <- e
			}
		}
	}()
	return out
}

func (f *told) until(t *testing.T, machine string, within time.Duration, what func() bool) bool {
	t.Helper()
	for end := time.After(within); ; {
		select {
		case e, ok := <-f.events:
			if !ok {
				t.Fatal("the stream ended")
			}
			if e.Machine == machine && what() {
				return true
			}
		case <-end:
			return false
		}
	}
}

// Whatever a row shows, an event that names the machine comes when it changes, and the
// row that is read then is new. All goes over REST but what workers and DHCP do.
func TestEveryChangeOfARowIsTold(t *testing.T) {
	t.Parallel()
	g := newRigWith(t, func(g *rig, c *workflow.Config) {
		c.Power, c.Machines = switched{}, g.db.HardwareIndex
	})
	op := g.token("op", hardware.TokenSpec{Role: hardware.RoleOperator})
	const at = api.Base + "/hardware/m1"
	do := func(method, path, body string) func() {
		return func() {
			t.Helper()
			if status, text := g.ask(g.url, method, path, op, body); status >= 300 {
				t.Errorf("%s %s: %d %s", method, path, status, text)
			}
		}
	}
	verb := func(name, body string) func() { return do("POST", at+"/"+name, body) }
	patch := func(body string) func() { return do("PATCH", at, body) }
	row := func() *api.HardwareSummary {
		list := g.rows(op, "name=m1")
		if len(list.Items) == 0 {
			return nil
		}
		return &list.Items[0]
	}
	do("POST", api.Base+"/apply", `
kind: Template
metadata: {name: write}
spec: {actions: [{name: image, kind: image.write, with: {image: debian}}, {name: restart, kind: reboot}]}
`)()
	stream := g.follow(op, g.rows(op, "").Cursor)
	for _, tc := range []struct {
		what string
		do   func()
		is   func(*api.HardwareSummary) bool
	}{
		{"create", do("POST", api.Base+"/hardware", `{"metadata":{"name":"m1"},"spec":{"interfaces":[{"mac":"52:54:00:00:00:01"}]}}`), func(s *api.HardwareSummary) bool { return s.MAC.String() == "52:54:00:00:00:01" }},
		{"label", patch(`{"metadata":{"labels":{"tier":"a"}}}`), func(s *api.HardwareSummary) bool { return s.Labels["tier"] == "a" }},
		{"bulk label", do("POST", api.Base+"/bulk", `{"verb":"label","names":["m1"],"options":{"set":{"tier":"b"}},"confirm":1}`), func(s *api.HardwareSummary) bool { return s.Labels["tier"] == "b" }},
		{"place", patch(`{"spec":{"rack":"r7","position":"12","assetTag":"T1","hostname":"web"}}`), func(s *api.HardwareSummary) bool {
			return s.Rack == "r7" && s.Position == "12" && s.AssetTag == "T1" && s.Hostname == "web"
		}},
		{"address", patch(`{"spec":{"interfaces":[{"mac":"52:54:00:00:00:01","addresses":["10.0.0.5/24"]},{"mac":"52:54:00:00:00:02"}]}}`), func(s *api.HardwareSummary) bool {
			return s.Address == netip.MustParseAddr("10.0.0.5") && len(s.MACs) == 2
		}},
		{"switches", patch(`{"spec":{"protect":true,"netboot":{"allowPXE":false,"allowWorkflow":false}}}`), func(s *api.HardwareSummary) bool {
			return s.Protect && s.PXE != nil && !*s.PXE && s.AllowWorkflow != nil && !*s.AllowWorkflow
		}},
		{"power driver", patch(`{"spec":{"protect":false,"netboot":null,"power":{"driver":"webhook","url":"https://power.example/","secret":"0123456789abcdef"}}}`), func(s *api.HardwareSummary) bool { return s.PowerDriver == "webhook" && s.PXE == nil && !s.Protect }},
		{"power", verb("power", `{"action":"on"}`), func(s *api.HardwareSummary) bool { return s.Power == hardware.PowerOn }},
		{"hold", verb("hold", `{}`), func(s *api.HardwareSummary) bool { return s.Hold && s.HoldReason != "" && !s.HoldSince.IsZero() }},
		{"an issue comes", func() {}, func(s *api.HardwareSummary) bool {
			return s.Issues == 1 && s.Issue.Kind == hardware.IssueHeld && s.Issue.Fix != ""
		}},
		{"unhold", verb("hold", `{"hold":false}`), func(s *api.HardwareSummary) bool { return !s.Hold }},
		{"an issue goes", func() {}, func(s *api.HardwareSummary) bool { return s.Issues == 0 && s.Issue == nil }},
		{"maintenance", verb("maintenance", `{"note":"new fan"}`), func(s *api.HardwareSummary) bool { return s.Maintenance && s.MaintenanceNote == "new fan" }},
		{"maintenance's note", verb("maintenance", `{"note":"new disk"}`), func(s *api.HardwareSummary) bool { return s.MaintenanceNote == "new disk" }},
		{"maintenance ends", verb("maintenance", `{"off":true}`), func(s *api.HardwareSummary) bool { return !s.Maintenance && s.MaintenanceNote == "" }},
		{"claim", verb("claim", `{"claim":"c1","owner":"a/web"}`), func(s *api.HardwareSummary) bool { return s.Claim == "c1" && s.Owner == "a/web" }},
		{"workflow", do("POST", api.Base+"/workflows", `{"metadata":{"name":"w1"},"spec":{"hardware":"m1","template":"write","claim":"c1"}}`), func(s *api.HardwareSummary) bool {
			return s.State == hardware.StateProvisioning && s.Workflow == "w1" && s.Active && s.Image == "debian" && !s.Deadline.IsZero()
		}},
		{"worker", func() { g.install("m1") }, func(s *api.HardwareSummary) bool {
			return s.State == hardware.StateProvisioned && s.Installed && !s.Active && s.Image == "debian" && s.CPUs == 8 && s.Disks == 1 && s.DiskBytes == 1e9 && s.Serial == "S1"
		}},
		{"phone home", func() {
			h, err := g.db.HardwareByName(t.Context(), "m1")
			g.must(err)
			g.must(g.e.PhoneHome(t.Context(), h.Meta.UID, "w1", netip.MustParseAddr("10.0.0.5")))
		}, func(s *api.HardwareSummary) bool { return !s.OSUp.IsZero() }},
		{"retire", verb("retire", `{"force":true}`), func(s *api.HardwareSummary) bool { return s.State == hardware.StateRetired && s.Claim == "" }},
	} {
		tc.do()
		within := 10 * time.Second
		if strings.HasPrefix(tc.what, "an issue") {
			within = time.Minute // found by the sweep
		}
		if !stream.until(t, "m1", within, func() bool { s := row(); return s != nil && tc.is(s) }) {
			got, _ := json.Marshal(row())
			t.Fatalf("%s: no event that names the machine, or the row is %s", tc.what, got)
		}
	}
	do("DELETE", at+"?force=true", "")()
	if !stream.until(t, "m1", 10*time.Second, func() bool { return row() == nil }) {
		t.Error("delete: no event that names the machine")
	}
}

// install is what the worker of a machine reports of its active workflow, to its end.
func (g *rig) install(name string) {
	g.t.Helper()
	ctx := g.t.Context()
	h, err := g.db.HardwareByName(ctx, name)
	g.must(err)
	addr := netip.MustParseAddr("10.0.0.5")
	b, err := g.e.FirstPacket(ctx, workflow.FirstPacket{Hardware: h.Meta.UID, MAC: h.Spec.Interfaces[0].MAC, XID: 7, Firmware: hardware.FirmwareUEFI})
	g.must(err)
	g.must(g.e.Acked(ctx, h.Meta.UID, b.ID, addr, netip.MustParseAddr("10.0.0.1"), false))
	grant, err := g.e.Script(ctx, h.Meta.UID, addr)
	g.must(err)
	adm, err := g.e.Redeem(ctx, grant.Token, make([]byte, 32), addr)
	g.must(err)
	s, err := g.e.Attach(ctx, adm, nil)
	g.must(err)
	g.must(s.Facts(ctx, &hardware.Facts{CPUs: 8, MemoryBytes: 16 << 30, Serial: "S1", Firmware: "uefi", Disks: []hardware.DiskFact{{Path: "/dev/vda", Bytes: 1e9}, {Path: "/dev/sr0", Bytes: 1e9, ReadOnly: true}}}))
	for range 4 {
		for _, c := range s.Take() {
			if c.Assign != nil {
				g.must(s.Report(ctx, workflow.Report{Assignment: c.Assign.Assignment, Outcome: workflow.StateSucceeded, Result: workflow.Result{WrittenBytes: 1 << 20, Disk: "/dev/vda"}}))
			}
		}
	}
}

// A list and the stream after its cursor miss nothing, whatever is written meanwhile.
func TestListThenFollow(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	eye := g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	const machines = 200
	made := make(chan struct{})
	go func() {
		defer close(made)
		for i := range machines {
			h := &hardware.Hardware{Meta: hardware.Meta{Name: fmt.Sprintf("m%03d", i)}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0, 1, byte(i)}}}}}
			if err := g.db.CreateHardware(t.Context(), h); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	known := map[string]bool{}
	list := g.rows(eye, "")
	for len(list.Items) < machines/4 { // in the middle of it
		list = g.rows(eye, "")
	}
	for _, s := range list.Items {
		known[s.Name] = true
	}
	stream := g.follow(eye, list.Cursor)
	for end := time.After(30 * time.Second); len(known) < machines; {
		select {
		case e := <-stream.events:
			if e.Reason == hardware.ReasonRecordCreated {
				known[e.Machine] = true
			}
		case <-end:
			t.Fatalf("%d of %d machines are known", len(known), machines)
		}
	}
	<-made
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	g := held(t)
	g.machine(3, "free", "team=a")
	eye := g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	mine := g.token("c", hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"})
	now := g.now()
	for i, l := range []hardware.Lease{
		{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.0.0.101"), Expires: now.Add(time.Hour)},
		{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 2}, Addr: netip.MustParseAddr("10.0.0.102"), Expires: now.Add(-time.Hour)},
		{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 3}, Addr: netip.MustParseAddr("10.0.0.103"), Expires: now.Add(time.Hour)},
	} {
		l.Subnet, l.Updated = "lan", now.Add(time.Duration(i)*time.Second)
		g.must(g.kv.Leases().Put(t.Context(), l))
	}
	for range 70 { // so many rows that leases are listed at once
		g.machine(byte(10+len(g.rows(eye, "").Items)), fmt.Sprintf("x%d", len(g.rows(eye, "").Items)), "team=b")
	}
	for _, tc := range []struct{ token, query, want string }{
		{eye, "name=theirs,mine,nobody", "mine@10.0.0.101 theirs"},
		{eye, "name=", ""},
		{eye, "name=nobody", ""},
		{eye, "name=theirs,mine&claimed=true&sort=-name&limit=1", "theirs +1"},
		{eye, "name=mine&state=pending", ""},
		{eye, "selector=team=a", "free@10.0.0.103 mine@10.0.0.101"},
		{eye, "sort=name&limit=2", "free@10.0.0.103 mine@10.0.0.101 +71"},
		{eye, "q=52:54:00:00:00:02", "theirs"},
		// of what a claimer does not hold it sees no lease
		{mine, "", "free mine@10.0.0.101"},
		{mine, "name=theirs,free", "free"},
	} {
		list := g.rows(tc.token, tc.query)
		var got []string
		for _, s := range list.Items {
			word := s.Name
			if s.Address.IsValid() {
				word += "@" + s.Address.String()
			}
			got = append(got, word)
		}
		if list.Remaining > 0 {
			got = append(got, fmt.Sprintf("+%d", list.Remaining))
		}
		if text := strings.Join(got, " "); text != tc.want || list.Cursor == 0 || list.Kind != "HardwareSummaryList" {
			t.Errorf("%s: %s, cursor %d, want %s", tc.query, text, list.Cursor, tc.want)
		}
	}
	for query, want := range map[string]string{
		"name=" + strings.Repeat("a,", 1000): "the limit is 1000", "names=a": "parameters here", "sort=color": "one of", "state=red": "one of",
	} {
		if status, text := g.ask(g.url, "GET", api.Base+"/summaries?"+query, eye, ""); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.40s: %d %s", query, status, text)
		}
	}
	// what is not there is not sent
	if _, text := g.ask(g.url, "GET", api.Base+"/summaries?name=free", eye, ""); strings.Contains(text, "0001-01-01") || strings.Contains(text, "null") || strings.Contains(text, `""`) {
		t.Errorf("a row: %s", text)
	}
}

// discarded is an answer that nobody keeps.
type discarded struct {
	header http.Header
	bytes  int
}

func (d *discarded) Header() http.Header { return d.header }
func (d *discarded) WriteHeader(int)     {}
func (d *discarded) Write(b []byte) (int, error) {
	d.bytes += len(b)
	return len(b), nil
}

// processorTime is what this process has used of the processors: other work on the
// machine does not change it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSummaries is a list of 10,000 machines, all of it and as rows, from the
// request until the last byte, without network.
func BenchmarkSummaries(b *testing.B) {
	g := newRig(b)
	const machines = 10_000
	for i := range machines {
		mac := hardware.MAC{0x52, 0x54, 1, 0, byte(i >> 8), byte(i)}
		h := &hardware.Hardware{
			Meta: hardware.Meta{Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{"rack": fmt.Sprintf("r%d", i/40), "tier": "prod"}},
			Spec: hardware.Spec{Rack: fmt.Sprintf("r%d", i/40), Position: fmt.Sprint(i % 40), Interfaces: []hardware.NIC{{MAC: mac}}},
		}
		g.must(g.db.CreateHardware(b.Context(), h))
		f := &hardware.Facts{Arch: "amd64", Firmware: "uefi", CPUs: 64, MemoryBytes: 256 << 30, Vendor: "Acme", Product: "R1", Serial: fmt.Sprintf("SN%08d", i)}
		for d := range 4 {
			f.Disks = append(f.Disks, hardware.DiskFact{Path: fmt.Sprintf("/dev/nvme%dn1", d), Bytes: 2e12, Serial: fmt.Sprintf("S%d-%d", i, d), Model: "M", Transport: "nvme"})
		}
		m := &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{State: hardware.StateProvisioned, Since: g.now(), Workflow: "provision-1", Installed: true, Install: &hardware.InstallRef{Workflow: "provision-1", Image: "debian-12"}}}
		if i%10 == 0 {
			m.Status.Issues = []hardware.Issue{{Kind: hardware.IssueHeld, Severity: hardware.SeverityInfo, Since: g.now(), Detail: "held by an operator", Fix: "rackstrap hardware unhold NAME"}}
		}
		g.must(g.db.Commit(b.Context(), &workflow.Change{Machine: m, Facts: f}))
		g.must(g.kv.Leases().Put(b.Context(), hardware.Lease{MAC: mac, Subnet: "lan", Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Expires: g.now().Add(time.Hour)}))
	}
	for _, path := range []string{"/hardware", "/summaries", "/summaries#gzip", "/summaries?name=node-00001,node-00002", "/summaries?q=node-09999&limit=100"} {
		b.Run(strings.NewReplacer("/", "", "?", " ").Replace(path), func(b *testing.B) {
			path, encoding, _ := strings.Cut(path, "#")
			h := rest.New(g.deps)
			out := &discarded{header: http.Header{}}
			began := processorTime()
			for range b.N {
				out.bytes = 0
				out.header = http.Header{}
				r := httptest.NewRequest("GET", api.Base+path, nil)
				r.Header.Set("Accept-Encoding", encoding)
				h.ServeHTTP(out, r)
			}
			b.ReportMetric(float64(out.bytes), "bytes")
			b.ReportMetric(float64((processorTime()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
