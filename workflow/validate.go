package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Check is one thing that was looked at before an install.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Warning: it may do without.
	Warning bool   `json:"warning,omitempty"`
	Detail  string `json:"detail"`
	Fix     string `json:"fix,omitempty"`
}

// Ready reports whether nothing but warnings speaks against an install.
func Ready(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.OK && !c.Warning })
}

// Plan is what is to be installed, as far as that is known, and what only the
// appliance can tell of it.
type Plan struct {
	// ImageName is a record's name or a URL; empty is "not said yet". Image is that
	// record, nil where there is none.
	ImageName string
	Image     *PlannedImage
	// TemplateName is empty for "not said yet"; Template is nil where there is none.
	TemplateName string
	Template     *Template
	Params       map[string]any
	Disk         Disk
	// Reinstall allows a machine that is provisioned.
	Reinstall bool
	// BootFiles says why the machine cannot be given its boot files, nil if it can.
	BootFiles error
	// UserData says why the user-data cannot be read, nil if it can or there is none.
	UserData error
	// NeedsUserData: without it the installed system does nothing.
	NeedsUserData bool
	// SameHostname names another machine with the same host name.
	SameHostname string
}

// PlannedImage is what matters of an image before it is installed.
type PlannedImage struct {
	Arch  string
	Ready bool
	// Why it is not ready.
	Why string
	// DiskBytes is its size on the disk; 0 is unknown.
	DiskBytes int64
}

// Validate says what is missing before the machine can be installed. What is in
// order is in the list too, so that people see what was looked at.
func Validate(s Snapshot, p Plan) []Check {
	var out []Check
	for _, look := range []func(*Snapshot, *Plan) []Check{
		checkState, checkSwitches, checkNICs, checkNetwork, checkArch, checkBootFiles, checkTemplate, checkImage, checkDisk,
		checkLogin, checkHostname, checkPower,
	} {
		out = append(out, look(&s, &p)...)
	}
	return out
}

func good(name, format string, args ...any) Check {
	return Check{Name: name, OK: true, Detail: fmt.Sprintf(format, args...)}
}

func bad(name, fix, format string, args ...any) Check {
	return Check{Name: name, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

func doubt(name, fix, format string, args ...any) Check {
	c := bad(name, fix, format, args...)
	c.Warning = true
	return c
}

// checkState asks whether the lifecycle lets an install begin.
func checkState(s *Snapshot, p *Plan) []Check {
	const name = "state"
	st, n := &s.hw().Status, s.name()
	switch {
	case s.state() == hardware.StateRetired:
		return []Check{bad(name, "delete the record and register it anew: "+typeDelete(n), "it is retired")}
	case s.state() == hardware.StatePending:
		return []Check{bad(name, typeAccept(n), "it was discovered and nobody accepted it yet")}
	case st.Quarantined():
		return []Check{bad(name, "find the cause, then type: "+typeAccept(n), "it is in quarantine: %s", st.QuarantinedFor())}
	case st.Hold:
		return []Check{bad(name, "look into it, then type: "+typeUnhold(n), "it is on hold: %s", orWord(st.HoldReason.Sentence(), "it waits for a human"))}
	case s.active() != nil:
		return []Check{bad(name, "wait for it, or type: "+typeCancel(s.active().Meta.Name), "it has the active workflow %q", s.active().Meta.Name)}
	case s.state().Moving():
		return []Check{bad(name, typeExplain(n), "it is %s", s.state())}
	case st.Reserved != nil && st.Claim == nil:
		return []Check{bad(name, "claim it with --reuse "+st.Reserved.For+", or release it: "+typeRelease(n), "it is kept %s", reservedWords(st.Reserved))}
	case s.state() == hardware.StateProvisioned && !p.Reinstall && !st.KeptUnwiped():
		return []Check{bad(name, "release it first ("+typeRelease(n)+"), or provision it with --reinstall", "it is provisioned, and an install would destroy its disk")}
	}
	var out []Check
	if st.Maintenance {
		out = append(out, bad(name, "when that is over, type: "+typeMaintained(n), "it is in maintenance%s", note(st.MaintenanceNote)))
	}
	if c := st.Claim; c != nil {
		out = append(out, doubt(name, "provision it under that claim: --claim "+c.ID, "it is claimed by %s (%s)", orWord(c.Owner, "somebody"), c.ID))
	}
	if len(out) == 0 {
		out = append(out, good(name, "it is %s", s.state()))
	}
	return out
}

func checkSwitches(s *Snapshot, _ *Plan) []Check {
	var out []Check
	fix := "change the record: " + typeGet(s.name()) + ", then rackstrap apply -f FILE"
	spec := &s.hw().Spec
	if !spec.Netboot.PXE() {
		out = append(out, bad("switches", fix, "spec.netboot.allowPXE is false, so it is given no boot program"))
	}
	if !spec.Netboot.Workflow() {
		out = append(out, bad("switches", fix, "spec.netboot.allowWorkflow is false, so no workflow can begin"))
	}
	if spec.Protect {
		out = append(out, bad("switches", fix, "spec.protect is true, so nothing is written to its disks"))
	}
	if len(out) == 0 {
		out = append(out, good("switches", "netboot and workflows are allowed, and it is not protected"))
	}
	return out
}

// checkNICs asks whether DHCP can answer the machine; one NIC is enough.
func checkNICs(s *Snapshot, _ *Plan) []Check {
	places := s.places()
	if len(places) == 0 {
		return []Check{bad("address", "add spec.interfaces with the MAC of the NIC that netboots", "the record has no NIC")}
	}
	var out []Check
	for _, p := range places {
		switch {
		case p.ok:
			out = append(out, good("address", "%s", p.text))
		default:
			out = append(out, bad("address", p.fix, "%s", p.text))
		}
	}
	if slices.ContainsFunc(out, func(c Check) bool { return c.OK }) {
		for i := range out {
			out[i].Warning = !out[i].OK // another NIC is answered
		}
	}
	return out
}

// checkNetwork asks whether the addresses make a network for the installed system.
func checkNetwork(s *Snapshot, _ *Plan) []Check {
	var out []Check
	for _, p := range s.places() {
		if !p.ok {
			continue
		}
		sub := p.subnet
		for _, a := range p.nic.Addresses {
			if sub.Spec.Prefix.Contains(a.Addr()) && a.Bits() != sub.Spec.Prefix.Bits() {
				out = append(out, bad("network", fmt.Sprintf("write it as %s/%d", a.Addr(), sub.Spec.Prefix.Bits()),
					"%s has another prefix length than its subnet %s (%s)", a, sub.Meta.Name, sub.Spec.Prefix))
			}
		}
		fix := "set it in the subnet: " + typeSubnet(sub.Meta.Name)
		if !sub.Spec.Gateway.IsValid() && len(sub.Spec.Routes) == 0 {
			out = append(out, doubt("network", fix, "subnet %s has no gateway: the installed system reaches its own network only", sub.Meta.Name))
		}
		if len(sub.Spec.DNS) == 0 {
			out = append(out, doubt("network", fix, "subnet %s has no DNS server", sub.Meta.Name))
		}
		if len(out) == 0 {
			out = append(out, good("network", "subnet %s has gateway and DNS", sub.Meta.Name))
		}
		break
	}
	return out
}

func checkArch(s *Snapshot, _ *Plan) []Check {
	f := s.hw().Facts
	if f == nil || f.Arch == "" || f.Arch == s.hw().Arch() {
		return nil
	}
	return []Check{bad("arch", "set spec.arch: "+f.Arch, "the record says %s, and the machine is %s", s.hw().Arch(), f.Arch)}
}

func checkBootFiles(s *Snapshot, p *Plan) []Check {
	if p.BootFiles != nil {
		return []Check{bad("boot files", "put them into /var/lib/rackstrap/boot, or build with `make assets`", "%v", p.BootFiles)}
	}
	return []Check{good("boot files", "boot programs, kernel and initramfs for %s are there", s.hw().Arch())}
}

// checkTemplate renders the template as the install will.
func checkTemplate(s *Snapshot, p *Plan) []Check {
	const name = "template"
	switch {
	case p.TemplateName == "":
		return nil
	case p.Template == nil:
		return []Check{bad(name, typeTemplates, "there is no template %q", p.TemplateName)}
	}
	var out []Check
	_, err := Render(p.Template, p.Params, s.hw())
	var invalid *hardware.Invalid
	switch {
	case errors.As(err, &invalid):
		for _, e := range invalid.Errors {
			if p.ImageName == "" && e.Field == "spec.params.image" {
				out = append(out, doubt(name, "say which image: "+typeImages, "%s", e.Error()))
				continue
			}
			out = append(out, bad(name, "correct the parameter, or the template: rackstrap template get "+p.TemplateName, "%s", e.Error()))
		}
	case err != nil:
		out = append(out, bad(name, "correct the template: rackstrap template get "+p.TemplateName, "%v", err))
	default:
		out = append(out, good(name, "%s renders to %d actions", p.TemplateName, len(p.Template.Spec.Actions)))
	}
	return out
}

func checkImage(s *Snapshot, p *Plan) []Check {
	const name = "image"
	if p.ImageName == "" {
		return nil
	}
	if strings.Contains(p.ImageName, "/") {
		if err := validURL(p.ImageName); err != nil {
			return []Check{bad(name, typeImages, "%v", err)}
		}
		return []Check{doubt(name, "rackstrap image add NAME URL", "each worker fetches %s by itself; it was not looked at", p.ImageName)}
	}
	i := p.Image
	switch {
	case i == nil:
		return []Check{bad(name, typeImages, "there is no image %q", p.ImageName)}
	case cmp.Or(i.Arch, "amd64") != s.hw().Arch():
		return []Check{bad(name, typeImages, "image %q is for %s, and the machine is %s", p.ImageName, cmp.Or(i.Arch, "amd64"), s.hw().Arch())}
	case !i.Ready:
		return []Check{bad(name, "rackstrap image get "+p.ImageName, "image %q is not ready: %s", p.ImageName, orWord(i.Why, "it is being fetched"))}
	}
	return []Check{good(name, "image %q is ready", p.ImageName)}
}
