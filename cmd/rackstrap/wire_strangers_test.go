package main

import (
	"slices"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// ring is a dhcp.StrangerRing that was told what it has heard.
type ring []dhcp.Stranger

func (r *ring) List() []dhcp.Stranger { return slices.Clone(*r) }
func (r *ring) Forget(m hardware.MAC) {
	*r = slices.DeleteFunc(*r, func(s dhcp.Stranger) bool { return s.MAC == m })
}

// TestStrangers: who has a record by now is none any more.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	known, unknown := s.machine("m1").Spec.Interfaces[0].MAC, hardware.MAC{2, 9, 9, 9, 9, 9}
	at := time.Unix(1, 0)
	r := &ring{
		{MAC: known, Reason: hardware.ReasonUnknownMachine},
		{MAC: unknown, Reason: hardware.ReasonUnknownMachine, First: at, Last: at, Count: 2, Vendor: "PXEClient", Hostname: "h", Firmware: hardware.FirmwareBIOS, Interface: "eth0"},
	}
	got := strangers{r, s.engine.Strangers, s.db.View()}.Strangers()
	want := []api.Stranger{{MAC: unknown, Reason: hardware.ReasonUnknownMachine, First: at, Last: at, Count: 2, Vendor: "PXEClient", Hostname: "h", Firmware: hardware.FirmwareBIOS, Interface: "eth0", Do: "register it, or set spec.discovery: true in its Subnet"}}
	if !slices.Equal(got, want) || len(*r) != 1 {
		t.Errorf("got %v, %d are remembered", got, len(*r))
	}
	if got := (strangers{dhcp.NewStrangerRing(), s.engine.Strangers, s.db.View()}).Strangers(); len(got) != 0 {
		t.Errorf("nobody was heard: %v", got)
	}
}
