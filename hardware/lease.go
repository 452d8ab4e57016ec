package hardware

import (
	"net/netip"
	"time"
)

// Lease is one address confirmed to one client. The key is (Subnet, MAC): boot
// ROM, iPXE, worker and installed system of a machine share one address, whatever
// client identifiers they send.
type Lease struct {
	MAC    MAC        `json:"mac"`
	Subnet string     `json:"subnet"` // name
	Addr   netip.Addr `json:"address"`
	// Hardware is the uid of the machine that has the MAC; empty where none has.
	Hardware    string `json:"hardware,omitempty"`
	Hostname    string `json:"hostname,omitempty"`    // as the client calls itself
	ClientID    string `json:"clientID,omitempty"`    // option 61, in hex
	Reservation bool   `json:"reservation,omitempty"` // the address is in the record
	// Expires is when the client must have stopped using it.
	Expires time.Time `json:"expires"`
	Updated time.Time `json:"updated,omitzero"`
	// Declined: somebody else was found to use the address (a DHCPDECLINE, or our own
	// probe); it is not lent to anybody until Expires. The MAC is QuarantineMAC then, so
	// that it stays while the client gets another address.
	Declined bool `json:"declined,omitempty"`
	// DeclinedBy is the client that said so, UsedBy who answered our probe; zero where
	// unknown.
	DeclinedBy MAC `json:"declinedBy,omitzero"`
	UsedBy     MAC `json:"usedBy,omitzero"`
	// Released: the client gave it back.
	Released bool `json:"released,omitempty"`
}

// LeaseState is what a lease is worth at a moment.
type LeaseState string

// The states.
const (
	LeaseActive   LeaseState = "active"
	LeaseExpired  LeaseState = "expired"
	LeaseReleased LeaseState = "released" // the client gave it back
	// LeaseQuarantined: somebody else uses the address, so nobody gets it.
	LeaseQuarantined LeaseState = "quarantined"
)

// LeaseStates lists them.
func LeaseStates() []LeaseState {
	return []LeaseState{LeaseActive, LeaseExpired, LeaseReleased, LeaseQuarantined}
}

// State is what the lease is worth at now.
func (l *Lease) State(now time.Time) LeaseState {
	switch {
	case l.Released:
		return LeaseReleased
	case !l.Expires.After(now):
		return LeaseExpired
	case l.Declined:
		return LeaseQuarantined
	}
	return LeaseActive
}

// QuarantineMAC stands for the client in the lease of an IPv4 address that somebody
// else was found to use. It is a group address, which no client has.
func QuarantineMAC(a netip.Addr) MAC {
	b := a.As4()
	return MAC{3, 0, b[0], b[1], b[2], b[3]}
}
