package dhcp

import "github.com/rackstrap/rackstrap/hardware"

// proxied answers a packet in a Subnet where another server gives the addresses.
func proxied(_ *Class, _ Link, _ *Place, _ *hardware.Boot, _ Files) Decision {
	return Decision{Reason: hardware.ReasonProxySilent}
}
