package hardware

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	uuidA = "4c4c4544-0042-3510-8052-b4c04f564231"
	uuidB = "4c4c4544-0043-4d10-8031-c2c04f4b4432"
)

// box is a machine with two disks and two NICs, as its worker reports it.
func box() *Facts {
	return &Facts{
		Firmware: "uefi", SecureBoot: "off", CPUModel: "Xeon", CPUs: 16, MemoryBytes: 127 << 30, Vendor: "Dell Inc.", Product: "R650",
		Serial: "7XK2Z93", UUID: uuidA, BoardSerial: "CN1", ChassisSerial: "7XK2Z93", BIOS: "Dell 1.6.5", Kernel: "6.12.1", Worker: "1.0",
		BMC: &BMCFact{Address: netip.MustParseAddr("10.9.0.5"), Firmware: "6.10"},
		Disks: []DiskFact{
			{Path: "/dev/nvme0n1", Bytes: 2_000_398_934_016, Serial: "S1", WWN: "eui.1", Transport: "nvme"},
			{Path: "/dev/sda", Bytes: 480_103_981_056, Serial: "S2", Transport: "sata"},
		},
		NICs: []NICFact{
			{Name: "eth0", MAC: MAC{0x52, 0x54, 0, 0, 0, 1}, Link: true, Mbps: 25000},
			{Name: "eth1", MAC: MAC{0x52, 0x54, 0, 0, 0, 2}, Link: true, Mbps: 25000},
		},
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(f *Facts)
		want   string
	}{
		{"nothing", func(*Facts) {}, ""},
		{"disk gone", func(f *Facts) { f.Disks = f.Disks[1:] }, "disk S1 (2 TB nvme) is gone"},
		{"disk new", func(f *Facts) {
			f.Disks = append(f.Disks, DiskFact{Path: "/dev/sdb", Bytes: 3_840_755_982_336, Serial: "S3", Transport: "sas"})
		}, "disk S3 (3.8 TB sas) is new"},
		{"disk replaced", func(f *Facts) { f.Disks[1].Serial = "S4" }, "disk S2 (480 GB sata) is gone; disk S4 (480 GB sata) is new"},
		{"disk shrunk", func(f *Facts) { f.Disks[1].Bytes = 32 << 20 }, "disk S2 has 33 MB, was 480 GB"},
		{"disk worn out", func(f *Facts) { f.Disks[0].ReadOnly = true }, "disk S1 (2 TB nvme) can only be read"},
		{"disks in another order", func(f *Facts) {
			f.Disks[0], f.Disks[1] = f.Disks[1], f.Disks[0]
			f.Disks[0].Path, f.Disks[1].Path = "/dev/sdb", "/dev/nvme1n1"
		}, ""},
		{"a second path to a disk", func(f *Facts) {
			d := f.Disks[0]
			d.Path = "/dev/sdx"
			f.Disks = append(f.Disks, d)
		}, ""},
		{"a stick", func(f *Facts) {
			f.Disks = append(f.Disks, DiskFact{Path: "/dev/sdb", Bytes: 8e9, Transport: "usb", Removable: true})
		}, ""},
		{"memory", func(f *Facts) { f.MemoryBytes = 64 << 30 }, "memory 64 GiB, was 127 GiB"},
		{"one module of 32", func(f *Facts) { f.MemoryBytes -= 4 << 30 }, "memory 123 GiB, was 127 GiB"},
		{"what a kernel keeps", func(f *Facts) { f.MemoryBytes -= 700 << 20 }, ""},
		{"CPUs", func(f *Facts) { f.CPUs = 8 }, "8 CPUs, was 16"},
		{"no link", func(f *Facts) { f.NICs[1].Link, f.NICs[1].Mbps = false, 0 }, "NIC 52:54:00:00:00:02 has no link"},
		{"slower", func(f *Facts) { f.NICs[1].Mbps = 1000 }, ""},
		{"NIC changed", func(f *Facts) { f.NICs[1].MAC[5] = 9 }, "NIC 52:54:00:00:00:02 is gone; NIC 52:54:00:00:00:09 is new"},
		{"NIC renamed, another address", func(f *Facts) {
			f.NICs[1].Name, f.NICs[1].Permanent, f.NICs[1].MAC = "eth7", f.NICs[1].MAC, MAC{2, 0, 0, 0, 0, 1}
		}, ""},
		{"firmware", func(f *Facts) { f.BIOS, f.SecureBoot = "Dell 1.7.0", "on" }, "BIOS Dell 1.7.0, was Dell 1.6.5; Secure Boot on, was off"},
		{"BMC moved", func(f *Facts) { f.BMC = &BMCFact{Address: netip.MustParseAddr("10.9.0.6"), Firmware: "6.10"} }, "BMC address 10.9.0.6, was 10.9.0.5"},
		{"a worker that reports less", func(f *Facts) { f.BMC, f.BIOS, f.BoardSerial, f.Worker, f.Kernel = nil, "", "", "0.9", "6.1" }, ""},
		{"mainboard", func(f *Facts) { f.UUID, f.BoardSerial = uuidB, "CN2" }, "UUID " + uuidB[:40-4] + ", was " + uuidA + "; board serial CN2, was CN1"},
	} {
		old, now := box(), box()
		tt.change(now)
		if got := strings.Join(Differences(old, now), "; "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if d := Differences(nil, box()); d != nil {
		t.Errorf("the first report differs: %q", d)
	}
}

// FuzzDifferences: few, short and plain whatever two machines report; none where they
// report the same.
func FuzzDifferences(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i+1, "disk\x1b[2J")
	}
	f.Fuzz(func(t *testing.T, a, b uint64, s string) {
		x, y := arbitrary(a, s), arbitrary(b, s+"!")
		x.Cap()
		y.Cap()
		if b := x.BMC; b != nil && (b.Address.Zone() != "" || b.VLAN < 0 || b.VLAN > maxVLAN) {
			t.Errorf("a BMC is %+v", *b)
		}
		out := Differences(x, y)
		if len(out) > maxDifferences {
			t.Errorf("%d differences", len(out))
		}
		for _, d := range out {
			if len(d) > 256 || d != PlainText(d, 256) {
				t.Errorf("a difference is %q", d)
			}
		}
		if d := Differences(x, x); d != nil {
			t.Errorf("it differs from itself: %q", d)
		}
		h := &Hardware{Meta: Meta{UID: "h1"}, Facts: x}
		cs := Conflicts(h, y, []*Hardware{{Meta: Meta{UID: "h2", Name: "m2"}, Facts: y}}, time.Unix(0, 0))
		if len(cs) > 5 {
			t.Errorf("%d conflicts", len(cs))
		}
		if cs = Conflicts(h, x, nil, time.Unix(0, 0)); cs != nil {
			t.Errorf("it is not itself: %+v", cs)
		}
	})
}

// arbitrary makes facts that have little sense.
func arbitrary(seed uint64, s string) *Facts {
	r := rand.New(rand.NewPCG(seed, 1))
	word := func() string {
		return []string{"", s, strings.Repeat(s, 9), uuidA, uuidB, "A", "serial 1"}[r.IntN(7)]
	}
	f := &Facts{}
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.String {
			v.Field(i).SetString(word())
		}
	}
	f.CPUs, f.MemoryBytes = r.IntN(200)-100, r.Uint64()>>r.IntN(64)
	f.BMC = &BMCFact{Address: netip.IPv6LinkLocalAllNodes().WithZone(word()), VLAN: r.IntN(10_000) - 2000, Firmware: word()}
	for range r.IntN(30) {
		f.Disks = append(f.Disks, DiskFact{Path: word(), Serial: word(), WWN: word(), Transport: word(), Bytes: r.Uint64() >> r.IntN(64), ReadOnly: r.IntN(2) == 0})
		f.NICs = append(f.NICs, NICFact{Name: word(), MAC: MAC{byte(r.IntN(3)), byte(r.IntN(9))}, Link: r.IntN(2) == 0})
	}
	return f
}

func TestUnfilled(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": "", " ": "", "To Be Filled By O.E.M.": "", "to be filled by O.E.M": "", "Default string": "", "None": "", "0123456789": "", "00000000": "",
		"xxxxxxxxxx": "", "System Serial Number": "", "Not Specified": "", "..": "", "N/A": "", "1": "", "ffff": "",
		" 7XK2Z93 ": "7XK2Z93", "CZ1234ABCD": "CZ1234ABCD", "R650": "R650", "0": "", "10": "10",
	} {
		if got := Unfilled(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{
		strings.ToUpper(uuidA): uuidA, "00000000-0000-0000-0000-000000000000": "", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": "",
		"fefefefe-fefe-fefe-fefe-fefefefefefe": "", "03000200-0400-0500-0006-000700080009": "", "not settable": "", "4c4c4544-0042": "",
		"4c4c4544x0042-3510-8052-b4c04f564231": "",
	} {
		if got := realUUID(s); got != want {
			t.Errorf("UUID %q: %q, want %q", s, got, want)
		}
	}
	if got := swapped(uuidA); got != "44454c4c-4200-1035-8052-b4c04f564231" || swapped(got) != uuidA {
		t.Errorf("swapped is %s", got)
	}
}

// record is the record of a box, with its facts.
func record(name string, f *Facts) *Hardware {
	h := &Hardware{Meta: Meta{Name: name, UID: "uid-" + name}, Facts: f}
	for _, n := range f.NICs {
		h.Spec.Interfaces = append(h.Spec.Interfaces, NIC{MAC: n.MAC})
	}
	return h
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	other := box()
	other.UUID, other.Serial, other.NICs = uuidB, "OTHER99", []NICFact{{MAC: MAC{0x52, 0x54, 0, 0, 0, 7}}}
	for _, tt := range []struct {
		name   string
		change func(f, o *Facts)
		want   string
	}{
		{"agrees", func(_, _ *Facts) {}, ""},
		{"same UUID", func(_, o *Facts) { o.UUID = strings.ToUpper(uuidA) }, "duplicate-uuid with m2: its UUID " + uuidA + " is also that of m2"},
		{"same junk", func(f, o *Facts) {
			f.UUID, f.Serial = "03000200-0400-0500-0006-000700080009", "Default string"
			o.UUID, o.Serial = f.UUID, f.Serial
		}, ""},
		{"same serial", func(_, o *Facts) { o.Serial = "7xk2z93" }, "duplicate-serial with m2: its serial number 7XK2Z93 is also that of m2"},
		{"same serial of another vendor", func(_, o *Facts) { o.Serial, o.Vendor = "7XK2Z93", "HPE" }, ""},
		{"a NIC moved here", func(f, _ *Facts) { f.NICs = append(f.NICs, NICFact{MAC: MAC{0x52, 0x54, 0, 0, 0, 7}}) }, "mac-elsewhere with m2: its NIC 52:54:00:00:00:07 is in the record of m2"},
		{
			"another machine", func(f, _ *Facts) {
				f.UUID, f.Serial, f.ChassisSerial, f.BoardSerial = "4c4c4544-0099-3510-8052-b4c04f564231", "NEW1", "NEW1", "CN2"
			},
			"machine-replaced: its UUID is 4c4c4544-0099-3510-8052-b4c04f564231, was " + uuidA + "; its serial number is NEW1, was 7XK2Z93; its board serial is CN2, was CN1; its chassis serial is NEW1, was 7XK2Z93",
		},
		{
			"mainboard changed", func(f, _ *Facts) { f.UUID, f.BoardSerial = "4c4c4544-0099-3510-8052-b4c04f564231", "CN2" },
			"machine-replaced: its UUID is 4c4c4544-0099-3510-8052-b4c04f564231, was " + uuidA + "; its board serial is CN2, was CN1; the same: serial number, chassis serial",
		},
		{"UUID read the other way round", func(f, _ *Facts) { f.UUID = swapped(uuidA) }, ""},
		{"board alone", func(f, _ *Facts) { f.BoardSerial = "CN2" }, ""},
		{"nothing known any more", func(f, _ *Facts) { f.UUID, f.Serial, f.BoardSerial, f.ChassisSerial = "", "None", "", "" }, ""},
		{"NIC changed", func(f, _ *Facts) { f.NICs[1].MAC[5] = 9 }, "nic-changed: not in the machine: NIC 52:54:00:00:00:02; in the machine and not in the record: NIC 52:54:00:00:00:09"},
		{"NIC under another address", func(f, _ *Facts) { f.NICs[1].Permanent, f.NICs[1].MAC = f.NICs[1].MAC, MAC{2, 0, 0, 0, 0, 1} }, ""},
	} {
		h, f, o := record("m1", box()), box(), *other
		tt.change(f, &o)
		var got []string
		for _, c := range Conflicts(h, f, []*Hardware{h, record("m2", &o)}, now) {
			s := string(c.Kind)
			if c.With != "" {
				s += " with " + c.With
			}
			got = append(got, s+": "+c.Detail)
		}
		if s := strings.Join(got, " | "); s != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, s, tt.want)
		}
	}
}

// A conflict keeps its age and what a human said of it until it changes; one with a
// machine's own past lasts until the machine is the old one again, or is vouched for.
func TestConflictsLast(t *testing.T) {
	t.Parallel()
	at := func(m int) time.Time { return time.Date(2026, 11, 21, 3, m, 0, 0, time.UTC) }
	h := record("m1", box())
	twin := record("m2", &Facts{UUID: uuidB, Vendor: "HPE"})
	report := func(f *Facts, m int) {
		h.Status.Conflicts = Conflicts(h, f, []*Hardware{twin}, at(m))
		h.Facts = f
	}
	changed := func() *Facts { f := box(); f.UUID = uuidB; return f }
	report(changed(), 1)
	report(changed(), 2)
	if c := h.Status.Conflicts; len(c) != 2 || c[0].Kind != ConflictUUID || c[1].Kind != ConflictReplaced || !c[1].Since.Equal(at(1)) || c[1].Was.UUID != uuidA || !h.Status.Disputed() {
		t.Fatalf("after a second report: %+v", c)
	}
	report(box(), 3)
	if h.Status.Conflicts != nil || h.Status.Disputed() {
		t.Fatalf("the old machine is back: %+v", h.Status.Conflicts)
	}
	report(changed(), 4)
	if !h.Status.Vouch(at(5)) || h.Status.Vouch(at(5)) || h.Status.Disputed() {
		t.Fatalf("vouched: %+v", h.Status.Conflicts)
	}
	report(changed(), 6)
	if c := h.Status.Conflicts; len(c) != 1 || c[0].Kind != ConflictUUID || !c[0].Accepted.Equal(at(5)) || !c[0].Since.Equal(at(4)) || h.Status.Disputed() {
		t.Fatalf("what was vouched for came back: %+v", c)
	}
	twin.Meta.Name = "m3"
	report(changed(), 7)
	if c := h.Status.Conflicts; len(c) != 1 || !c[0].Accepted.IsZero() || !h.Status.Disputed() {
		t.Fatalf("it is with another machine now: %+v", c)
	}
}

func TestNetboots(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	type boot struct {
		to    Target
		phase Phase
		after time.Duration
	}
	worker := func(p Phase) boot { return boot{TargetWorker, p, time.Minute} }
	disk := func(after time.Duration) boot { return boot{TargetDisk, PhaseAddress, after} }
	repeat := func(b boot, n int) []boot {
		var out []boot
		for range n {
			out = append(out, b)
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		boots []boot
		count int
		phase Phase
	}{
		{"the first", repeat(worker(PhaseProgram), 1), 0, 0},
		{"one in vain", repeat(worker(PhaseProgram), 2), 1, PhaseProgram},
		{"five in vain", repeat(worker(PhaseProgram), 6), 5, PhaseProgram},
		{"the furthest", []boot{worker(PhaseProgram), worker(PhaseKernel), worker(PhaseScript), worker(PhaseDHCP)}, 3, PhaseKernel},
		{"never answered", repeat(worker(PhaseDHCP), 9), 0, 0},
		{"to its disk in between", append(repeat(worker(PhaseProgram), 4), disk(time.Minute), worker(PhaseProgram)), 0, 0},
		{"its disk does not start", repeat(disk(2*time.Minute), 6), 5, PhaseAddress},
		{"it runs in between", append(repeat(disk(2*time.Minute), 4), disk(time.Hour), disk(2*time.Minute)), 1, PhaseAddress},
		{"restarted each week", repeat(disk(7*24*time.Hour), 9), 0, 0},
		{"the operator's own script", repeat(boot{TargetCustom, PhaseScript, time.Minute}, 9), 0, 0},
		{"on hold", repeat(boot{TargetNone, PhaseAddress, time.Minute}, 9), 0, 0},
	} {
		var n Netboots
		var before *Boot
		now := t0
		for _, b := range tt.boots {
			now = now.Add(b.after)
			next := Next{Target: b.to}
			n.Add(before, next, now)
			before = &Boot{Started: now, Next: next, Phase: b.phase}
		}
		if n.Count != tt.count || n.Phase != tt.phase || n.Looping() != (tt.count >= NetbootLimit) {
			t.Errorf("%s: %+v", tt.name, n)
		}
		if n.Count > 0 && (n.Since.After(n.Last) || n.Since.IsZero()) {
			t.Errorf("%s: since %v, last %v", tt.name, n.Since, n.Last)
		}
	}
}
