package e2e_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestUnknownMachineIsInstalled: a machine that nobody registered is switched on. It is
// discovered, accepted by a rule and installed; nothing is typed after the rule.
func TestUnknownMachineIsInstalled(t *testing.T) {
	t.Parallel()
	r := makeRack(t, "discovery", func(ctx context.Context, name, dir, bin string) (*rig.Rack, error) {
		return rig.NewRackWith(ctx, name, dir, bin, rig.Options{Subnet: func(r *rig.Rack, s *hardware.SubnetSpec) {
			s.Mode, s.Discovery = hardware.ModePool, true
			s.Pool = &hardware.Pool{Ranges: []hardware.AddrRange{{From: r.Addr(100), To: r.Addr(199)}}}
		}})
	})
	addDebian(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	_, err := r.Appliance.Client.Rules.Create(ctx, &hardware.Rule{
		Meta: hardware.Meta{Name: "lab"},
		Spec: hardware.RuleSpec{
			Match:  hardware.RuleMatch{Subnet: "lan", Facts: map[string]string{"vendor": "rackstrap*", "diskSerial": "D1"}},
			Labels: map[string]string{"found": "yes"},
			Accept: true,
			Provision: &hardware.RuleProvision{Template: "install", Params: map[string]any{
				"image": rig.ImageName, "disk": "serial=D1", "userData": fmt.Sprintf("#cloud-config\nssh_authorized_keys: [%q]\n", r.Key.Line),
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Lab.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: lab.UEFI, CPUs: 2, Disks: []lab.DiskSpec{
		{Size: 4 << 30, Serial: "D1"}, {Size: 1 << 30, Serial: "D2"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}

	name := ""
	err = r.Await(ctx, "", func(e *api.Event, _ *workflow.Progress) bool {
		if e != nil && e.Reason == hardware.ReasonDiscovered {
			name = e.Machine
		}
		return name != ""
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AwaitReason(ctx, name, hardware.ReasonWorkflowSucceeded, ""); err != nil {
		t.Fatal(err)
	}
	h, err := r.Appliance.Client.Hardware.Get(ctx, name)
	if err != nil || h.Status.State != hardware.StateProvisioned || h.Meta.Labels["found"] != "yes" {
		t.Errorf("%v: state %s, labels %v", err, h.Status.State, h.Meta.Labels)
	}
	s, err := rig.DialSSH(ctx, r.Lab, leased(ctx, t, r, m), "debian", r.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if host, err := s.Run("hostname"); err != nil || host != name {
		t.Errorf("the installed system calls itself %q (%v), the record %q", host, err, name)
	}
	grown(t, s)
	if err := m.PowerOff(); err != nil {
		t.Fatal(err)
	}
	if err := lab.Zero(m.Disk(1)); err != nil {
		t.Errorf("the other disk was written: %v", err)
	}
	events, _, err := r.Appliance.Client.ListEvents(ctx, client.Filter{Hardware: name, Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []hardware.Reason{hardware.ReasonBootStarted, hardware.ReasonDiscovered, hardware.ReasonRuleApplied, hardware.ReasonWorkflowCreated} {
		if !slices.ContainsFunc(events, func(e api.Event) bool { return e.Reason == want }) {
			t.Errorf("the timeline has no %s:\n%s", want, tell(events))
		}
	}
}

// leased is the address that a machine has from the pool.
func leased(ctx context.Context, t *testing.T, r *rig.Rack, m *lab.Machine) netip.Addr {
	t.Helper()
	leases, err := r.Appliance.Client.Leases(ctx, client.LeaseFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases {
		if l.MAC == hardware.MAC(m.MAC()) {
			return l.Addr
		}
	}
	t.Fatalf("no lease of %s among %+v", m.MAC(), leases)
	return netip.Addr{}
}
