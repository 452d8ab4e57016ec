package probe

import (
	"fmt"
	"net/netip"

	"github.com/rackstrap/rackstrap/hardware"
)

// Ask sends a request to the machine's BMC and gives its answer without the completion
// code. Its error is that of the way to it, or a completion code that is not 0.
type Ask func(netfn, cmd byte, data ...byte) ([]byte, error)

// The requests of IPMI 2.0 that we need, by network function and command.
const (
	netfnApp       = 0x06
	cmdDeviceID    = 0x01 // section 20.1
	cmdChannelInfo = 0x42 // section 22.24
	netfnTransport = 0x0c
	cmdLANConfig   = 0x02 // section 23.2
)

// Parameters of Get LAN Configuration Parameters (table 23-4).
const (
	lanAddress = 3
	lanMAC     = 5
	lanVLAN    = 20
)

// mediumLAN is 802.3 LAN among the channel medium types (table 6-3).
const mediumLAN = 4

// BMC asks the machine's BMC who and where it is. Vendors put its network on any of
// the channels 1 to 11, and some have several: that with an address counts. One that
// answers and says nothing of its network is a BMC all the same. Its error says that
// nobody answers.
func BMC(ask Ask) (*hardware.BMCFact, error) {
	id, err := ask(netfnApp, cmdDeviceID)
	if err != nil {
		return nil, fmt.Errorf("the BMC does not say what it is: %w", err)
	}
	found := &hardware.BMCFact{Firmware: revision(id)}
	for _, channel := range lanChannels(ask) {
		b := lan(ask, channel)
		if found.MAC.IsZero() || b.Address.IsValid() {
			b.Firmware = found.Firmware
			found = &b
		}
		if found.Address.IsValid() {
			break
		}
	}
	return found, nil
}

// revision is the firmware's: a number and one in BCD (bytes 3 and 4 of Get Device ID).
func revision(id []byte) string {
	if len(id) < 4 {
		return ""
	}
	return fmt.Sprintf("%d.%02x", id[2]&0x7f, id[3])
}

// lanChannels are those with an Ethernet port; channel 1 where the BMC does not say.
func lanChannels(ask Ask) []byte {
	var out []byte
	for c := byte(1); c <= 11; c++ {
		if info, err := ask(netfnApp, cmdChannelInfo, c); err == nil && len(info) >= 2 && info[1]&0x7f == mediumLAN {
			out = append(out, c)
		}
	}
	if out == nil {
		return []byte{1}
	}
	return out
}

// lan is what is set for a channel.
func lan(ask Ask, channel byte) (b hardware.BMCFact) {
	get := func(parameter byte, size int) []byte {
		v, err := ask(netfnTransport, cmdLANConfig, channel, parameter, 0, 0)
		if err != nil || len(v) < 1+size { // a revision comes first
			return make([]byte, size)
		}
		return v[1 : 1+size]
	}
	if a := netip.AddrFrom4([4]byte(get(lanAddress, 4))); !a.IsUnspecified() && !a.IsMulticast() {
		b.Address = a
	}
	b.MAC = hardware.MAC(get(lanMAC, 6))
	if v := get(lanVLAN, 2); v[1]&0x80 != 0 {
		b.VLAN = int(v[0]) | int(v[1]&0x0f)<<8
	}
	return b
}
