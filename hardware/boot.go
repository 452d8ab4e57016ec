package hardware

import (
	"net/netip"
	"strings"
	"time"
)

// Target is what a machine boots next.
type Target string

// The targets.
const (
	// TargetNone: an address at most, never a boot program.
	TargetNone Target = "none"
	// TargetHalt: a boot program that stops the machine where it is, and asks again now
	// and then: nothing on its disks may run. With TargetNone firmware goes on to them.
	TargetHalt Target = "halt"
	// TargetDisk: the machine is sent on to its own disk.
	TargetDisk Target = "disk"
	// TargetWorker: our kernel, initramfs and a boot token.
	TargetWorker Target = "worker"
	// TargetCustom: the operator's own iPXE script or chain URL.
	TargetCustom Target = "custom"
)

// Scope is what a boot token allows its worker.
type Scope string

// The scopes.
const (
	ScopeEnrol Scope = "enrol" // report capped facts, nothing else
	ScopeIdle  Scope = "idle"  // stay connected, wait
	ScopeWork  Scope = "work"  // run the actions of a workflow
)

// Next is the answer of workflow.NextBoot: what this machine boots, and why.
// dhcp, ipxe and power control all obey the same value.
type Next struct {
	Target Target `json:"target"`
	Scope  Scope  `json:"scope,omitempty"`
	Reason Reason `json:"reason"`
}

// Netboots reports whether the machine is given a boot program.
func (n Next) Netboots() bool {
	return n.Target == TargetWorker || n.Target == TargetCustom || n.Target == TargetHalt
}

// Boot is one boot of one machine, from the first DHCP packet of its firmware
// on. It owns the token that lets its worker in. Engine-written.
type Boot struct {
	// ID is a ULID: sorts by start time.
	ID       string    `json:"id"`
	Hardware string    `json:"hardware"` // uid, or StrangerUID
	Started  time.Time `json:"started"`
	// Deadline ends the token's life; it is moved on while the boot downloads.
	Deadline time.Time `json:"deadline"`
	MAC      MAC       `json:"mac"`
	XID      uint32    `json:"xid"`
	Firmware Firmware  `json:"firmware"`
	// Client is the ACKed address; the token goes to nobody else.
	Client netip.Addr `json:"client,omitzero"`
	// Server is our address as this client was told.
	Server netip.Addr `json:"server,omitzero"`
	Next   Next       `json:"next"`
	// Chain is how the firmware is led to our kernel, chosen when the boot began.
	Chain Chain `json:"chain,omitempty"`
	// Discovery: the Subnet it boots in lets machines without a record, and pending
	// ones, boot the worker.
	Discovery bool `json:"discovery,omitempty"`
	// Programs counts how often an iPXE of ours was named in this boot; a second
	// time means that the chain loops.
	Programs int `json:"programs,omitempty"`
	// Phase is the furthest step this boot reached; Moved is when, zero for the first.
	Phase Phase     `json:"phase,omitempty"`
	Moved time.Time `json:"moved,omitzero"`
	// WorkerKey is the ed25519 public key the token is bound to, once redeemed.
	WorkerKey []byte `json:"workerKey,omitempty"`
	// Progress: something came of it; see Netboots.
	Progress bool `json:"progress,omitempty"`
	// Closed: a newer boot took over, or the machine went on to its disk.
	Closed bool `json:"closed,omitempty"`
}

// Phase is how far a boot has come; it never goes backwards.
type Phase int

// The phases in order.
const (
	PhaseDHCP Phase = iota
	PhaseAddress
	PhaseProgram
	PhaseScript
	PhaseKernel
	PhaseWorker
)

// Name is the phase in the words of the timeline.
func (p Phase) Name() string {
	names := []string{"first packet", "address", "boot program", "boot script", "kernel", "worker"}
	if p < 0 || int(p) >= len(names) {
		return "unknown"
	}
	return names[p]
}

// Reach moves the phase on to p at now, never backwards, and reports whether it moved.
func (b *Boot) Reach(p Phase, now time.Time) bool {
	if p <= b.Phase {
		return false
	}
	b.Phase, b.Moved = p, now
	return true
}

// LastMoved is when the boot got to its Phase.
func (b *Boot) LastMoved() time.Time {
	if b.Moved.IsZero() {
		return b.Started
	}
	return b.Moved
}

// StrangerUID stands for the uid of a machine that has no record, in its Boot, its
// token and its worker's session. No record has such a uid.
func StrangerUID(m MAC) string { return strangerPrefix + strings.ReplaceAll(m.String(), ":", "") }

const strangerPrefix = "stranger-"

// StrangerMAC is the MAC of a StrangerUID; ok is false for the uid of a record.
func StrangerMAC(uid string) (m MAC, ok bool) {
	hex, ok := strings.CutPrefix(uid, strangerPrefix)
	if !ok {
		return m, false
	}
	m, err := ParseMAC(hex)
	return m, err == nil
}

// BootDeadline is how long a boot's token lives.
const BootDeadline = 30 * time.Minute

// bootRetry is how long a retransmitted DISCOVER with one xid belongs to one boot.
// edk2 and option ROMs give up within a minute (4+8+16+32 s).
const bootRetry = 90 * time.Second

// bootFlood bounds how often one MAC can start boots of which nothing comes.
const bootFlood = 2 * time.Second

// Supersedes reports whether a first packet (xid and firmware, from our iPXE stage or
// not) at now starts a new boot over b, the machine's current one.
//
// Until a boot program was fetched, another packet of the same firmware within bootFlood
// goes on with the boot that there is, whose token is as good as a new one: it may be the
// next entry of the boot order, and it may be forged. Another firmware that got no further
// than the first packet does too; one that had its address is led by another chain.
//
// Firmware retransmits with one xid and some derive the xid from the MAC, so an
// equal xid is the same boot only while nothing came of it. iPXE's own DISCOVER
// continues the firmware's boot until the script was fetched: after that, iPXE in
// a NIC's ROM is the firmware of the next power-on. A machine that was sent to its
// disk fetches none, so there it is that soon.
func (b *Boot) Supersedes(xid uint32, fw Firmware, ipxe bool, now time.Time) bool {
	switch {
	case b == nil || b.Closed || now.After(b.Deadline):
		return true
	case b.Phase < PhaseProgram && now.Sub(b.Started) < bootFlood && (ipxe || fw == b.Firmware || b.Phase == PhaseDHCP):
		return false // forged packets with a known MAC must not cost a write each
	case ipxe && b.Phase < PhaseScript && b.Next.Target == TargetDisk:
		return now.Sub(b.Started) > bootRetry
	case ipxe && b.Phase < PhaseScript:
		return now.Sub(b.Started) > BootDeadline
	case b.XID == xid && b.Phase < PhaseProgram:
		return now.Sub(b.Started) > bootRetry
	}
	return true
}
