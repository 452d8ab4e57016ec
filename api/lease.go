package api

import "github.com/rackstrap/rackstrap/hardware"

// Lease is a DHCP lease and what it is worth now. Offers are not among them: those are
// in memory for a minute.
type Lease struct {
	hardware.Lease
	State hardware.LeaseState `json:"state"`
	// Machine is the name of the record that has the MAC; empty where none has.
	Machine string `json:"machine,omitempty"`
}
