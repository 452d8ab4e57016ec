package api

import (
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Stranger is a MAC without a Hardware record that asked for an address. What it
// said of itself may be a lie: text is plain and short, and nothing follows from it.
type Stranger struct {
	MAC    hardware.MAC    `json:"mac"`
	Reason hardware.Reason `json:"reason"`
	First  time.Time       `json:"first"`
	Last   time.Time       `json:"last"`
	// Count is how many of its packets were looked at.
	Count    int               `json:"count"`
	Vendor   string            `json:"vendorClass,omitempty"`
	Hostname string            `json:"hostname,omitempty"`
	Firmware hardware.Firmware `json:"firmware,omitempty"`
	// Interface of ours that heard it.
	Interface string `json:"interface"`
	// Relay is the DHCP relay it came through.
	Relay netip.Addr `json:"relay,omitzero"`
	// Phase is how far its boot came, where its Subnet lets it boot the worker: first
	// packet, address, boot program, boot script, kernel or worker. Subnet names that
	// Subnet, and Address is what it was given there.
	Phase   string     `json:"phase,omitempty"`
	Subnet  string     `json:"subnet,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
	// Detail completes the Reason's sentence.
	Detail string `json:"detail,omitempty"`
	// Do is what becomes of it, or what to do about it, in words.
	Do string `json:"do,omitempty"`
}
