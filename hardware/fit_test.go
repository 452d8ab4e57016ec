package hardware

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func fitMachine(change func(*Hardware)) *Hardware {
	h := &Hardware{
		Meta:   Meta{Name: "m1", UID: "u1", Labels: map[string]string{"rack": "a1", "tier": "prod"}},
		Status: Status{State: StateAvailable},
		Facts: &Facts{
			Arch: "amd64", CPUs: 8, MemoryBytes: 16 << 30,
			Disks: []DiskFact{
				{Path: "/dev/sda", Bytes: 2e12, Transport: "sata", Rotational: true},
				{Path: "/dev/nvme0n1", Bytes: 1e12, Transport: "nvme"},
				{Path: "/dev/sdb", Bytes: 64e9, Transport: "usb", Removable: true},
			},
			NICs: []NICFact{{Name: "eth0", Link: true, Mbps: 10000}, {Name: "eth1"}},
		},
	}
	if change != nil {
		change(h)
	}
	return h
}

// reserved keeps a machine for a group.
func reserved(group string, keepDisks bool) func(*Hardware) {
	return func(h *Hardware) {
		h.Status.Reserved = &Reservation{For: group, KeepDisks: keepDisks, Until: time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)}
		if keepDisks {
			h.Status.State, h.Status.Dirty = StateProvisioned, []DiskRef{{Path: "/dev/sda"}}
			h.Status.Stopping = &Stopping{Claim: "c", Stopped: &Stopped{By: StoppedByPowerOff}}
		}
	}
}

// TestFit has one row for each thing that can speak against a machine.
func TestFit(t *testing.T) {
	t.Parallel()
	flash, off := false, false
	disks := func(d ...DiskRequirement) ClaimSpec { return ClaimSpec{Requirements: Requirements{Disks: d}} }
	for _, r := range []struct {
		change func(*Hardware)
		active bool
		spec   ClaimSpec
		first  Against
		want   string // "" is "fits"
	}{
		{},
		{spec: ClaimSpec{
			Hardware: "m1", Selector: "rack in (a1,a2),!gone", FailureDomain: "a1", FailureDomainLabel: "rack",
			Requirements: Requirements{Arch: "amd64", CPUs: 8, Memory: "16384Mi", Disks: []DiskRequirement{{}, {Size: "1T", Transport: "nvme"}}, NICs: []NICRequirement{{Mbps: 10000}, {}}},
		}},
		{change: func(h *Hardware) { h.Status.State = "" }},
		{change: func(h *Hardware) { h.Facts = nil }, spec: ClaimSpec{Requirements: Requirements{Arch: "amd64"}}},
		{change: func(h *Hardware) { h.Status.Failures = Quarantine - 1 }},
		{spec: ClaimSpec{Hardware: "m2"}, first: AgainstName, want: "the claim names m2"},
		{change: func(h *Hardware) { h.Status.Claim = &ClaimRef{ID: "c9", Owner: "capi/prod/x"} }, first: AgainstClaimed, want: "claimed by capi/prod/x (claim c9)"},
		{change: func(h *Hardware) { h.Status.State = StateProvisioning }, first: AgainstState, want: "state provisioning"},
		{change: func(h *Hardware) { h.Status.State = StatePending }, first: AgainstState, want: "state pending: accept it first with `rackstrap accept m1`"},
		{change: func(h *Hardware) { h.Status.Workflow = "w1" }, active: true, first: AgainstWorkflow, want: "workflow w1 is active"},
		{change: func(h *Hardware) { h.Status.Hold = true }, first: AgainstHold, want: "on hold"},
		{change: func(h *Hardware) { h.Status.Hold, h.Status.HoldReason = true, ReasonTokenStolen }, first: AgainstHold, want: "on hold: " + ReasonTokenStolen.Sentence()},
		{change: func(h *Hardware) { h.Status.Maintenance, h.Status.MaintenanceNote = true, "new fan" }, first: AgainstMaintenance, want: "in maintenance: new fan"},
		{change: func(h *Hardware) { h.Status.Failures = 3 }, first: AgainstQuarantine, want: "quarantined: 3 installs or wipes failed in a row: look at `rackstrap explain m1`"},
		{change: func(h *Hardware) { h.Status.Unhealthy = "it is slow" }, first: AgainstQuarantine, want: "quarantined: its last owner said: it is slow: look at `rackstrap explain m1`"},
		{change: reserved("a/b", false), spec: ClaimSpec{Reuse: "a"}, first: AgainstReserved, want: "kept for claims of a/b until 2026-11-21T04:00:00Z: claim it with --reuse a/b, or end that with `rackstrap release m1`"},
		{change: reserved("a/b", false), spec: ClaimSpec{Reuse: "a/b"}},
		{change: reserved("a/b", true), spec: ClaimSpec{Reuse: "a/b"}},
		{change: reserved("a/b", true), first: AgainstReserved, want: "kept for claims of a/b until 2026-11-21T04:00:00Z: claim it with --reuse a/b, or end that with `rackstrap release m1`; state provisioned"},
		{change: func(h *Hardware) { reserved("a/b", true)(h); h.Status.Stopping.Stopped = nil }, spec: ClaimSpec{Reuse: "a/b"}, first: AgainstState, want: "state provisioned, and what its last owner installed is being stopped"},
		{change: func(h *Hardware) { reserved("a/b", true)(h); h.Status.Hold = true }, spec: ClaimSpec{Reuse: "a/b"}, first: AgainstHold, want: "on hold"},
		{change: func(h *Hardware) { reserved("a/b", true)(h); h.Status.State = StateReleasing }, spec: ClaimSpec{Reuse: "a/b"}, first: AgainstState, want: "state releasing"},
		{spec: ClaimSpec{FailureDomain: "b1", FailureDomainPreferred: true}},
		{change: func(h *Hardware) { h.Spec.Protect = true }, first: AgainstProtect, want: "protect: true"},
		{change: func(h *Hardware) { h.Spec.Netboot.AllowPXE = &off }, first: AgainstNetboot, want: "allowPXE: false: nothing can be installed on it"},
		{change: func(h *Hardware) { h.Spec.Netboot.AllowWorkflow = &off }, first: AgainstNetboot, want: "allowWorkflow: false: nothing can be installed on it"},
		{spec: ClaimSpec{Selector: "rack in (b1,b2),tier,!x"}, first: AgainstLabels, want: "label rack=a1, wanted rack in (b1,b2)"},
		{spec: ClaimSpec{Selector: "gpu=2,tier!=prod"}, first: AgainstLabels, want: "no label gpu, wanted gpu=2; label tier=prod, wanted tier!=prod"},
		{spec: ClaimSpec{FailureDomain: "b1"}, first: AgainstDomain, want: "in failure domain rack=a1, wanted b1"},
		{spec: ClaimSpec{FailureDomain: "b1", FailureDomainLabel: "row"}, first: AgainstDomain, want: "in no failure domain: it has no label row, wanted row=b1"},
		{change: func(h *Hardware) { delete(h.Meta.Labels, "rack"); h.Spec.Rack = "b1" }, spec: ClaimSpec{FailureDomain: "b1"}},
		{change: func(h *Hardware) { h.Spec.Rack = "b1" }, spec: ClaimSpec{FailureDomain: "b1"}, first: AgainstDomain, want: "in failure domain rack=a1, wanted b1"},
		{change: func(h *Hardware) { h.Spec.Arch = "arm64" }, spec: ClaimSpec{Requirements: Requirements{Arch: "amd64"}}, first: AgainstArch, want: "is arm64, wanted amd64"},
		{change: func(h *Hardware) { h.Facts.Arch = "arm64" }, spec: ClaimSpec{Requirements: Requirements{Arch: "amd64"}}, first: AgainstArch, want: "is arm64, wanted amd64"},
		{change: func(h *Hardware) { h.Facts = nil }, spec: ClaimSpec{Requirements: Requirements{CPUs: 1}}, first: AgainstNoFacts, want: "no facts known yet: boot its worker once with `rackstrap hardware inspect m1`"},
		{spec: ClaimSpec{Requirements: Requirements{CPUs: 9, Memory: "64Gi"}}, first: AgainstCPUs, want: "has 8 CPUs, wanted 9; has 16 GiB memory, wanted 64Gi"},
		{change: func(h *Hardware) { h.Facts.MemoryBytes = 65_500_000_000 }, spec: ClaimSpec{Requirements: Requirements{Memory: "64Gi"}}},
		{spec: disks(DiskRequirement{Count: 3}), first: AgainstDisks, want: "lacks a disk; has nvme0n1 1 TB nvme, sda 2 TB sata spinning, sdb 64 GB usb removable"},
		{spec: disks(DiskRequirement{}, DiskRequirement{Transport: "nvme"})},
		{spec: disks(DiskRequirement{Count: 2, Rotational: &flash, Size: "500Gi", Transport: "nvme"}, DiskRequirement{Transport: "usb"}), first: AgainstDisks, want: "lacks a flash nvme disk of 500Gi and a usb disk; has nvme0n1 1 TB nvme, sda 2 TB sata spinning, sdb 64 GB usb removable"},
		{spec: ClaimSpec{Requirements: Requirements{NICs: []NICRequirement{{Count: 2, Mbps: 1000}}}}, first: AgainstNICs, want: "lacks a NIC with 1000 Mbit/s; has eth0 10000 Mbit/s, eth1 without a link"},
	} {
		r.spec.Owner = "o"
		h := fitMachine(r.change)
		c := Fit(h, r.active, &r.spec)
		if got := strings.Join(c.Against, "; "); got != r.want || c.Fits != (r.want == "") {
			t.Errorf("%+v\n got %v %s\nwant %s", r.spec, c.Fits, got, r.want)
		}
		m, err := NewMatcher(&r.spec, Selector{})
		if err != nil {
			t.Fatal(err)
		}
		if first, fits := m.Fits(h, r.active); first != r.first || fits != (r.want == "") {
			t.Errorf("%+v: first %q, fits %v; wanted %q", r.spec, first, fits, r.first)
		}
	}
}

func TestFitScope(t *testing.T) {
	t.Parallel()
	within, err := ParseSelector("team=blue")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMatcher(&ClaimSpec{Owner: "o"}, within)
	if err != nil {
		t.Fatal(err)
	}
	c := m.Candidate(fitMachine(nil), false, "")
	if want := "no label team, and the token may only use team=blue"; len(c.Against) != 1 || c.Against[0] != want {
		t.Errorf("got %v", c)
	}
	held := fitMachine(func(h *Hardware) { h.Status = Status{State: StateProvisioned, Claim: &ClaimRef{ID: "mine"}} })
	if c := m.Candidate(held, false, "mine"); !c.Fits {
		t.Errorf("the machine that the claim has does not fit it: %v", c)
	}
}

func TestInstalled(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	for have, want := range map[uint64]uint64{
		0: 0, 100 * mib: 100 * mib, 16 * gib: 16 * gib, 24*gib + 256*mib: 24*gib + 256*mib,
		970 * mib: 1 * gib, 1963*mib + 4096: 2 * gib, 3900 * mib: 4 * gib, 7941 * mib: 8 * gib, 64008 * mib: 64 * gib,
		385_000 * mib: 384 * gib, 15 * gib / 2: 15 * gib / 2, 257_000 * mib: 256 * gib, 1_030_000 * mib: 1024 * gib,
	} {
		if got := Installed(have); got != want && !(have > want && got >= have) {
			t.Errorf("of %d MiB: %d MiB, wanted %d", have/mib, got/mib, want/mib)
		}
	}
	for range 10_000 { // never less than what is there, never much more
		n := rand.Uint64N(4 << 40)
		if got := Installed(n); got < n || got > n+n/16 {
			t.Fatalf("Installed(%d) = %d", n, got)
		}
	}
}

// TestDisksAreDistinct compares the matching with trying every way.
func TestDisksAreDistinct(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	yes := 0
	for range 5000 {
		spec := ClaimSpec{Owner: "o"}
		for range 1 + r.IntN(3) {
			d := DiskRequirement{Count: r.IntN(3), Size: Quantity(fmt.Sprint(r.IntN(4)))}
			d.Transport = []string{"", "nvme", "sata"}[r.IntN(3)]
			if x := r.IntN(4); x > 1 {
				b := x == 2
				d.Rotational = &b
			}
			spec.Requirements.Disks = append(spec.Requirements.Disks, d)
		}
		h := fitMachine(func(h *Hardware) {
			h.Facts.Disks = nil
			for range r.IntN(7) {
				h.Facts.Disks = append(h.Facts.Disks, DiskFact{
					Bytes: uint64(1 + r.IntN(4)), Transport: []string{"nvme", "sata"}[r.IntN(2)], Rotational: r.IntN(2) == 0, Removable: r.IntN(6) == 0,
				})
			}
		})
		m, err := NewMatcher(&spec, Selector{})
		if err != nil {
			t.Fatal(err)
		}
		_, got := m.Fits(h, false)
		want := everyWay(m.disks, h.Facts.Disks)
		if got != want {
			t.Fatalf("wanted %+v, has %+v: got %v, trying every way gives %v", m.disks, h.Facts.Disks, got, want)
		}
		if c := Fit(h, false, &spec); c.Fits != got {
			t.Fatalf("Fit says %v, Fits %v", c, got)
		}
		if got {
			yes++
		}
	}
	if yes < 500 || yes > 4500 {
		t.Errorf("%d of 5000 fit: the property says little", yes)
	}
}

func everyWay(wants []diskWant, disks []DiskFact) bool {
	if len(wants) == 0 {
		return true
	}
	for i := range disks {
		if wants[0].takes(&disks[i]) && everyWay(wants[1:], slices.Delete(slices.Clone(disks), i, i+1)) {
			return true
		}
	}
	return false
}

func bestOf(t *testing.T, m *Matcher, id string, all []*Hardware) []*Hardware {
	t.Helper()
	got := slices.Collect(m.Best(id, all, func(uid string) bool { return uid == "busy" }))
	if !slices.Equal(got, slices.Collect(m.Best(id, all, func(uid string) bool { return uid == "busy" }))) {
		t.Fatal("the order is not the same twice")
	}
	for h := range m.Best(id, all, func(uid string) bool { return uid == "busy" }) {
		if h != got[0] {
			t.Fatal("who asks for one gets another")
		}
		break
	}
	return got
}

// TestBest: the best score comes first, then the fewest failures, and claims begin
// at places of their own.
func TestBest(t *testing.T) {
	t.Parallel()
	var all []*Hardware
	for i := range 24 {
		all = append(all, fitMachine(func(h *Hardware) {
			h.Meta.Name, h.Meta.UID = fmt.Sprintf("m%02d", i), fmt.Sprint(i)
			h.Meta.Labels = map[string]string{"n": fmt.Sprint(i % 5)}
			h.Status.Failures = i % 2
			h.Status.Hold = i == 20 || i == 21
			if i > 21 {
				h.Meta.UID = "busy"
			}
		}))
	}
	spec := ClaimSpec{Owner: "o", Prefer: []Preference{{"n=3", 10}, {"n in (3,4)", 5}, {"n=4", -6}}}
	m, err := NewMatcher(&spec, Selector{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := NewMatcher(&ClaimSpec{Owner: "o"}, Selector{})
	if err != nil {
		t.Fatal(err)
	}
	firsts, plainFirsts := map[string]bool{}, map[string]bool{}
	for i := range 200 {
		got := bestOf(t, m, fmt.Sprint(i), all)
		if len(got) != 20 {
			t.Fatalf("%d machines fit, wanted 20", len(got))
		}
		for j, h := range got[:4] {
			if h.Meta.Labels["n"] != "3" || h.Status.Failures != j/2 {
				t.Errorf("place %d has n=%s and %d failures", j, h.Meta.Labels["n"], h.Status.Failures)
			}
		}
		if last := got[19]; last.Meta.Labels["n"] != "4" || m.Score(last) != -1 {
			t.Errorf("the last has n=%s", last.Meta.Labels["n"])
		}
		firsts[got[0].Meta.Name] = true
		got = bestOf(t, plain, fmt.Sprint(i), all)
		for j, h := range got {
			if h.Status.Failures != j/10 {
				t.Errorf("place %d has %d failures", j, h.Status.Failures)
			}
		}
		plainFirsts[got[0].Meta.Name] = true
	}
	if len(firsts) != 2 || len(plainFirsts) != 10 {
		t.Errorf("200 claims begin with %v and %v, wanted all that are as good", firsts, plainFirsts)
	}
	if len(bestOf(t, m, "x", nil)) != 0 {
		t.Error("something of nothing")
	}
}

// TestBestOfAGroup: what is kept for the claim's group comes before anything, then the
// failure domain that it prefers, by label or by the record's rack, then its weights.
func TestBestOfAGroup(t *testing.T) {
	t.Parallel()
	named := func(name, rack string, change func(*Hardware)) *Hardware {
		h := fitMachine(change)
		h.Meta.Name, h.Meta.UID, h.Meta.Labels = name, name, map[string]string{"n": name}
		h.Spec.Rack = rack
		return h
	}
	all := []*Hardware{
		named("a", "x", nil),
		named("b", "y", nil),
		named("c", "x", func(h *Hardware) { reserved("g", true)(h); h.Status.Failures = 2 }),
		named("d", "y", reserved("g", false)),
		named("e", "y", reserved("other", false)),
		named("f", "y", func(h *Hardware) { h.Status.Failures = 1 }),
	}
	for _, tc := range []struct {
		spec ClaimSpec
		want string
	}{
		{ClaimSpec{Reuse: "g", FailureDomain: "y", FailureDomainPreferred: true, Prefer: []Preference{{"n=a", 100}, {"n=f", 50}, {"n=c", -100}}}, "dcfba"},
		{ClaimSpec{Reuse: "g", Prefer: []Preference{{"n=a", 100}, {"n=c", 1}}}, "cdabf"},
		{ClaimSpec{FailureDomain: "y", FailureDomainPreferred: true, Prefer: []Preference{{"n=a", 100}}}, "bfa"},
		{ClaimSpec{FailureDomain: "z", FailureDomainPreferred: true, Prefer: []Preference{{"n=b", 1}}}, "baf"},
		{ClaimSpec{FailureDomain: "y"}, "bf"},
		{ClaimSpec{Reuse: "nobody", Prefer: []Preference{{"n=b", 1}}}, "baf"},
	} {
		tc.spec.Owner = "o"
		m, err := NewMatcher(&tc.spec, Selector{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, h := range bestOf(t, m, "id", all) {
			got += h.Meta.Name
		}
		if got != tc.want {
			t.Errorf("%+v: %s, wanted %s", tc.spec, got, tc.want)
		}
		a := m.Answer("", all, func(string) bool { return false })
		if a.Picked != tc.want[:1] || a.Candidates[0].Hardware != a.Picked {
			t.Errorf("%+v: picked %s, first %s", tc.spec, a.Picked, a.Candidates[0].Hardware)
		}
	}
	m, _ := NewMatcher(&ClaimSpec{Owner: "o", Reuse: "g", FailureDomain: "y", FailureDomainPreferred: true}, Selector{})
	if c := m.Candidate(all[2], false, ""); c.Note != "kept for g until 2026-11-21T04:00:00Z; in failure domain rack=x, preferred y" {
		t.Errorf("said of a kept one elsewhere: %q", c.Note)
	}
}

// TestAnswer: the picked one comes first, then what fits, then what has the least
// against it; and the counts say why the others were not picked.
func TestAnswer(t *testing.T) {
	t.Parallel()
	named := func(name string, score int, change func(*Hardware)) *Hardware {
		h := fitMachine(change)
		h.Meta.Name, h.Meta.UID, h.Meta.Labels = name, name, map[string]string{"s": fmt.Sprint(score)}
		return h
	}
	held := func(h *Hardware) {
		h.Status = Status{State: StateProvisioned, Claim: &ClaimRef{ID: "mine", Owner: "o"}}
	}
	all := []*Hardware{
		named("a", 1, nil),
		named("b", 2, nil),
		named("c", 0, func(h *Hardware) { h.Status.Hold, h.Spec.Protect = true, true }),
		named("d", 0, func(h *Hardware) { h.Status.Hold = true }),
		named("e", 2, func(h *Hardware) { h.Status.Maintenance = true }),
		named("f", 0, held),
		named("g", 0, nil),
	}
	m, err := NewMatcher(&ClaimSpec{Owner: "o", Prefer: []Preference{{"s=1", 1}, {"s=2", 2}}}, Selector{})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"mine": "f:fbaedgc:2 on hold, 1 in maintenance, 1 with an active workflow", "": "b:baedgcf:2 on hold, 1 claimed, 1 in maintenance, 1 with an active workflow"} {
		got := m.Answer(id, all, func(uid string) bool { return uid == "g" })
		order := ""
		for _, c := range got.Candidates {
			order += c.Hardware
		}
		if s := got.Picked + ":" + order + ":" + (&NoCandidate{Against: got.Against}).Counts(); s != want {
			t.Errorf("claim %q: %s, wanted %s", id, s, want)
		}
	}
	if got := m.Answer("", nil, nil); got.Picked != "" || len(got.Candidates) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

func BenchmarkFits(b *testing.B) {
	spec := ClaimSpec{Owner: "o", Selector: "rack=a1,tier in (prod,test)", Requirements: Requirements{CPUs: 4, Memory: "8Gi", Disks: []DiskRequirement{{Count: 2, Size: "500Gi"}}}}
	m, err := NewMatcher(&spec, Selector{})
	if err != nil {
		b.Fatal(err)
	}
	for name, h := range map[string]*Hardware{"fits": fitMachine(nil), "claimed": fitMachine(func(h *Hardware) { h.Status.Claim = &ClaimRef{ID: "x"} })} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Fits(h, false)
			}
		})
	}
}
