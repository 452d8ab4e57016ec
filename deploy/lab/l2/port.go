package l2

import (
	"fmt"
	"slices"
	"time"
)

// Port describes a port of a switch. The zero value is a plain one in VLAN 1.
type Port struct {
	Name string
	// VLAN is that of frames without a tag: 1 if 0, none if NoVLAN.
	VLAN uint16
	// Tagged are the VLANs that the port carries with tags.
	Tagged []uint16

	// Delay, Loss (0 to 1) and Rate (bits a second; 0: no limit) are of the cable, in
	// each direction. What is lost follows from Seed.
	Delay time.Duration
	Loss  float64
	Rate  int64
	Seed  uint64

	// Blocked is how long spanning tree keeps the port closed after its link came up:
	// what comes is thrown away, and nothing is sent but BPDUs.
	Blocked time.Duration
	// BPDU has the port send rapid spanning tree's configuration, as switches do
	// unless somebody filters it: clients that listen know that they have to wait.
	BPDU bool

	// LACP makes the port a member of an aggregation.
	LACP *LACP

	// PlainPXE makes an iPXE in a network card's ROM look like a ROM without it.
	PlainPXE bool
}

// NoVLAN is for ports that take nothing without a tag.
const NoVLAN = 0xfff

// LACP describes a port of an aggregation (IEEE 802.1AX).
type LACP struct {
	// Group is the aggregation's key; ports of the same one are one link.
	Group uint16
	// Fast asks the partner for a LACPDU each second, not every 30.
	Fast bool
	// Passive waits for the partner's first LACPDU.
	Passive bool
	// Fallback is after how long without a partner the port forwards like any other;
	// 0: never.
	Fallback time.Duration
}

func (p *Port) check() error {
	if p.VLAN == 0 {
		p.VLAN = 1
	}
	for _, v := range append(slices.Clone(p.Tagged), p.VLAN) {
		if v == 0 || v > NoVLAN || v == NoVLAN && slices.Contains(p.Tagged, v) {
			return fmt.Errorf("port %s: VLAN %d: use 1 to 4094", p.Name, v)
		}
	}
	if slices.Contains(p.Tagged, p.VLAN) {
		return fmt.Errorf("port %s: VLAN %d has tags or has not", p.Name, p.VLAN)
	}
	if p.Loss < 0 || p.Loss > 1 {
		return fmt.Errorf("port %s: loss %v: use 0 to 1", p.Name, p.Loss)
	}
	return nil
}

// in is the VLAN of a frame that came in at the port, and the frame without a tag.
func (p *Port) in(frame []byte) (vlan uint16, bare []byte, ok bool) {
	vlan, tagged := tagOf(frame)
	if tagged {
		frame = untag(frame)
	}
	switch {
	case vlan != 0:
		return vlan, frame, slices.Contains(p.Tagged, vlan)
	default: // no tag, or a priority only (IEEE 802.1Q 6.9)
		return p.VLAN, frame, p.VLAN != NoVLAN
	}
}

// out is a frame of the VLAN as the port sends it.
func (p *Port) out(vlan uint16, frame []byte) ([]byte, bool) {
	switch {
	case vlan == p.VLAN:
		return frame, true
	case slices.Contains(p.Tagged, vlan):
		return tag(frame, vlan), true
	}
	return nil, false
}
