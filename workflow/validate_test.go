package workflow

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// fit is a machine that can be installed, and its plan.
func fit() (Snapshot, Plan) {
	s := with(plain(), webhook(time.Minute), spec(func(s *hardware.Spec) { s.SSHKeys = []string{"ssh-ed25519 AAAA"} }))
	s.Subnets[0].Spec.Gateway = netip.MustParseAddr("10.0.0.1")
	s.Subnets[0].Spec.DNS = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	s.Hardware.Facts = &hardware.Facts{Arch: "amd64", Disks: []hardware.DiskFact{
		{Path: "/dev/sr0", Bytes: 1e9, Removable: true}, {Path: "/dev/vda", Bytes: 20e9, Serial: "S1"},
	}}
	return s, Plan{
		ImageName: "debian-12", Image: &PlannedImage{Ready: true, DiskBytes: 3e9}, TemplateName: "install",
		Template: &Template{Meta: hardware.Meta{Name: "install"}, Spec: TemplateSpec{
			Parameters: []Parameter{{Name: "image"}, {Name: "disk", Default: ""}},
			Actions:    []ActionSpec{{Name: "write", Kind: KindImageWrite, With: map[string]any{"image": "${image}", "disk": "${disk}"}}},
		}},
		Params: map[string]any{"image": "debian-12"},
	}
}

func TestValidateGolden(t *testing.T) {
	t.Parallel()
	m := time.Minute
	var b strings.Builder
	second := hardware.DiskFact{Path: "/dev/vdb", Bytes: 100e9}
	for _, tt := range []struct {
		name  string
		wrong bool // not ready
		s     func(*Snapshot)
		p     func(*Plan)
	}{
		{"everything is there", false, nil, nil},
		{"nothing said yet", false, nil, func(p *Plan) { *p = Plan{TemplateName: "install", Template: p.Template} }},
		{"no NIC", true, spec(func(s *hardware.Spec) { s.Interfaces = nil }), nil},
		{"no subnet", true, func(s *Snapshot) { s.Subnets = nil }, nil},
		{"one NIC of two", false, spec(func(s *hardware.Spec) { s.Interfaces = append(s.Interfaces, hardware.NIC{DHCP: no()}) }), nil},
		{"wrong prefix length", true, spec(func(s *hardware.Spec) {
			s.Interfaces[0].Addresses[0] = netip.MustParsePrefix("10.0.0.5/16")
		}), nil},
		{"no gateway, no DNS", false, func(s *Snapshot) {
			s.Subnets[0].Spec.Gateway, s.Subnets[0].Spec.DNS = netip.Addr{}, nil
		}, nil},
		{"switches", true, spec(func(s *hardware.Spec) {
			s.Netboot, s.Protect = hardware.Netboot{AllowPXE: no(), AllowWorkflow: no()}, true
		}), nil},
		{"pending", true, status(func(s *hardware.Status) { s.State = hardware.StatePending }), nil},
		{"retired", true, status(func(s *hardware.Status) { s.State = hardware.StateRetired }), nil},
		{"on hold", true, status(func(s *hardware.Status) { s.Hold, s.HoldReason = true, hardware.ReasonOnHold }), nil},
		{"quarantined", true, status(func(s *hardware.Status) { s.State, s.Failures = hardware.StateFailed, 3 }), nil},
		{"active workflow", true, install(m), nil},
		{"releasing", true, status(func(s *hardware.Status) { s.State = hardware.StateReleasing }), nil},
		{"provisioned", true, status(func(s *hardware.Status) { s.State = hardware.StateProvisioned }), nil},
		{"provisioned, again", false, status(func(s *hardware.Status) { s.State = hardware.StateProvisioned }), func(p *Plan) { p.Reinstall = true }},
		{"maintenance and claimed", true, status(func(s *hardware.Status) {
			s.Maintenance, s.Claim = true, &hardware.ClaimRef{ID: "c-7", Owner: "team-a"}
		}), nil},
		{"another architecture", true, func(s *Snapshot) { s.Hardware.Facts.Arch = "arm64" }, nil},
		{"image of another architecture", true, nil, func(p *Plan) { p.Image.Arch = "arm64" }},
		{"no image", true, nil, func(p *Plan) { p.Image = nil }},
		{"image not ready", true, nil, func(p *Plan) { p.Image = &PlannedImage{Why: "fetching"} }},
		{"image by URL", false, nil, func(p *Plan) {
			p.ImageName, p.Image, p.Params["image"] = "https://images.example.net/a.raw", nil, "https://images.example.net/a.raw"
		}},
		{"image too large", true, nil, func(p *Plan) { p.Image.DiskBytes = 30e9 }},
		{"two disks", true, func(s *Snapshot) { s.Hardware.Facts.Disks = append(s.Hardware.Facts.Disks, second) }, nil},
		{"two disks, the largest", false, func(s *Snapshot) { s.Hardware.Facts.Disks = append(s.Hardware.Facts.Disks, second) }, func(p *Plan) { p.Disk, p.Image.DiskBytes = DiskLargest, 30e9 }},
		{"by serial", false, nil, func(p *Plan) { p.Disk = "serial=S1" }},
		{"another disk", true, nil, func(p *Plan) { p.Disk = "/dev/nvme0n1" }},
		{"no disk", true, func(s *Snapshot) { s.Hardware.Facts.Disks = nil }, nil},
		{"nothing known of it", false, func(s *Snapshot) { s.Hardware.Facts = nil }, nil},
		{"nobody can log in", false, spec(func(s *hardware.Spec) { s.SSHKeys = nil }), nil},
		{"user-data that cannot be read", true, nil, func(p *Plan) { p.UserData = errors.New("the cloud-config: line 3: did not find expected key") }},
		{"user-data that is needed", false, nil, func(p *Plan) { p.NeedsUserData = true }},
		{"host name twice", false, nil, func(p *Plan) { p.SameHostname = "m2" }},
		{"bad host name", true, spec(func(s *hardware.Spec) { s.Hostname = "a_b" }), nil},
		{"by hand", false, spec(func(s *hardware.Spec) { s.Power = nil }), nil},
		{"controller never asked", false, status(func(s *hardware.Status) { s.Power = hardware.Power{} }), nil},
		{"controller refuses", true, status(func(s *hardware.Status) { s.Power.Error = "401 Unauthorized" }), nil},
		{"no boot files", true, nil, func(p *Plan) { p.BootFiles = errors.New("boot files missing: vmlinuz-amd64") }},
		{"no template", true, nil, func(p *Plan) { p.Template = nil }},
		{"missing parameter", true, nil, func(p *Plan) { p.Template.Spec.Parameters[1] = Parameter{Name: "disk"} }},
	} {
		s, p := fit()
		if tt.s != nil {
			tt.s(&s)
		}
		if tt.p != nil {
			tt.p(&p)
		}
		checks := Validate(s, p)
		if Ready(checks) == tt.wrong {
			t.Errorf("%s: ready is %v", tt.name, Ready(checks))
		}
		said := 0
		for _, c := range checks {
			if !c.OK {
				said++
			}
			if c.Detail == "" || c.Name == "" || strings.Contains(c.Detail, "%!") || (!c.OK && c.Fix == "") {
				t.Errorf("%s: empty check %+v", tt.name, c)
			}
		}
		if !strings.HasPrefix(tt.name, "everything") && tt.name != "by serial" && tt.name != "two disks, the largest" && tt.name != "provisioned, again" && said == 0 {
			t.Errorf("%s: nothing was said", tt.name)
		}
		fmt.Fprintf(&b, "-- %s --\n%s", tt.name, checkText(checks, tt.name == "everything is there"))
	}
	golden(t, "testdata/validate.txtar", b.String())
}

// checkText is what is not in order; all of it where everything is wanted.
func checkText(checks []Check, everything bool) string {
	var b strings.Builder
	for _, c := range checks {
		word := "missing"
		switch {
		case c.OK && !everything:
			continue
		case c.OK:
			word = "ok"
		case c.Warning:
			word = "warning"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", word, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(&b, "  %s\n", c.Fix)
		}
	}
	return b.String()
}
