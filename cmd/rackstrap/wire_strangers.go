package main

import (
	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// strangers is the ring of DHCP as REST sees it.
type strangers struct {
	ring interface {
		List() []dhcp.Stranger
		Forget(m hardware.MAC)
	}
	view recordView
}

var _ rest.Strangers = strangers{}

// Strangers implements rest.Strangers. It forgets those that have a record by now.
func (s strangers) Strangers() []api.Stranger {
	var out []api.Stranger
	for _, x := range s.ring.List() {
		if _, known := s.view.HardwareByMAC(x.MAC); known {
			s.ring.Forget(x.MAC)
			continue
		}
		out = append(out, api.Stranger{
			MAC: x.MAC, Reason: x.Reason, First: x.First, Last: x.Last, Count: x.Count, Vendor: x.Vendor, Hostname: x.Hostname,
			Firmware: x.Firmware, Interface: x.Interface, Relay: x.Relay,
		})
	}
	return out
}
