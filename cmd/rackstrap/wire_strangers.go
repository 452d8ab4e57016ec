package main

import (
	"slices"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// strangers is the ring of DHCP, and what the engine knows of the boots of those that are
// let in, as REST sees them.
type strangers struct {
	ring interface {
		List() []dhcp.Stranger
		Forget(m hardware.MAC)
	}
	boots func() []workflow.StrangerBoot
	view  recordView
}

var _ rest.Strangers = strangers{}

// Strangers implements rest.Strangers. It forgets those that have a record by now.
func (s strangers) Strangers() []api.Stranger {
	boots := map[hardware.MAC]workflow.StrangerBoot{}
	for _, b := range s.boots() {
		boots[b.Boot.MAC] = b
	}
	var out []api.Stranger
	for _, x := range s.ring.List() {
		if _, known := s.view.HardwareByMAC(x.MAC); known {
			s.ring.Forget(x.MAC)
			continue
		}
		row := api.Stranger{
			MAC: x.MAC, Reason: x.Reason, First: x.First, Last: x.Last, Count: x.Count, Vendor: x.Vendor, Hostname: x.Hostname,
			Firmware: x.Firmware, Interface: x.Interface, Relay: x.Relay,
		}
		b, booting := boots[x.MAC]
		if booting {
			booted(&row, &b)
			delete(boots, x.MAC)
		}
		row.Do = whatToDo(&row, booting)
		out = append(out, row)
	}
	for _, b := range boots { // the ring has forgotten it, or it came back after a restart
		row := api.Stranger{MAC: b.Boot.MAC, First: b.Boot.Started, Count: 1}
		booted(&row, &b)
		row.Do = whatToDo(&row, true)
		out = append(out, row)
	}
	slices.SortStableFunc(out, func(a, b api.Stranger) int { return b.Last.Compare(a.Last) })
	return out
}

// booted adds what is known of the boot.
func booted(row *api.Stranger, b *workflow.StrangerBoot) {
	row.Reason, row.Detail, row.Phase, row.Subnet, row.Address = b.Last, b.Detail, b.Boot.Phase.Name(), b.Subnet, b.Boot.Client
	if b.LastAt.After(row.Last) {
		row.Last = b.LastAt
	}
	if row.Firmware == hardware.FirmwareNone {
		row.Firmware = b.Boot.Firmware
	}
}

// whatToDo says what becomes of a stranger.
func whatToDo(row *api.Stranger, booting bool) string {
	switch {
	case row.Reason == hardware.ReasonEnrolFull:
		return "accept or delete some of those that wait: rackstrap hardware list --state pending"
	case booting:
		return "it boots the worker and then shows in: rackstrap hardware list --state pending"
	case row.Firmware != hardware.FirmwareNone:
		return "register it, or set spec.discovery: true in its Subnet"
	}
	return "register it, if it is to have an address"
}
