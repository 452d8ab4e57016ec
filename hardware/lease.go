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
	// probe); it is not lent to anybody until Expires.
	Declined bool `json:"declined,omitempty"`
	// Released: the client gave it back.
	Released bool `json:"released,omitempty"`
}
