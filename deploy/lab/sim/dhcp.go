package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// errNoAnswer: nobody answered for as long as the client asks.
var errNoAnswer = errors.New("no answer to DHCP")

// client is what asks: it decides the options of its packets.
type client struct {
	mac     hardware.MAC
	options []dhcpv4.Option
	// waits are for how long each packet is waited for.
	waits []time.Duration
}

// ipxeClient is the iPXE in the ROM of a BIOS machine's card, with the options that it
// sends (dhcp/testdata/ipxe-rom-discover.txt): it says that it can fetch by HTTP.
func ipxeClient(mac hardware.MAC) client {
	return client{mac: mac, waits: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, options: []dhcpv4.Option{
		dhcpv4.OptGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 0}),
		dhcpv4.OptGeneric(dhcpv4.OptionClientNetworkInterfaceIdentifier, []byte{1, 2, 1}),
		dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001"),
		dhcpv4.OptGeneric(dhcpv4.OptionUserClassInformation, []byte("iPXE")),
		dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionHostName,
			dhcpv4.OptionTFTPServerName, dhcpv4.OptionBootfileName, dhcpv4.GenericOptionCode(175)),
		dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(175), []byte{0xb1, 5, 1, 0x1a, 0xf4, 0x10, 0, 0xeb, 3, 1, 0, 0, 0x17, 1, 1, 0x22, 1, 1, 0x13, 1, 1, 0x11, 1, 1}),
		dhcpv4.OptGeneric(dhcpv4.OptionClientMachineIdentifier, make([]byte, 17)),
	}}
}

// systemClient is an installed Linux.
func systemClient(mac hardware.MAC, name string) client {
	return client{mac: mac, waits: []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second}, options: []dhcpv4.Option{
		dhcpv4.OptHostName(name),
		dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionHostName),
	}}
}

// lease is what a client was told.
type lease struct {
	addr netip.Addr
	// file is what to load; empty: nothing.
	file string
}

// obtain gets an address as RFC 2131 section 3.1 has it. Its error is errNoAnswer, or
// that of ctx, or of a socket that is closed.
func (c client) obtain(ctx context.Context, w *wire) (lease, error) {
	replies, stop := w.listen(c.mac)
	defer stop()
	discover, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(net.HardwareAddr(c.mac[:])), dhcpv4.WithBroadcast(true),
	}, c.modifiers()...)...)
	if err != nil {
		return lease{}, err
	}
	offer, err := c.ask(ctx, w, discover, replies, dhcpv4.MessageTypeOffer)
	if err != nil {
		return lease{}, err
	}
	request, err := dhcpv4.NewRequestFromOffer(offer, append([]dhcpv4.Modifier{dhcpv4.WithBroadcast(true)}, c.modifiers()...)...)
	if err != nil {
		return lease{}, err
	}
	ack, err := c.ask(ctx, w, request, replies, dhcpv4.MessageTypeAck)
	if err != nil {
		return lease{}, err
	}
	a, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	if !ok || a.IsUnspecified() {
		return lease{}, fmt.Errorf("an ACK without an address: %s", ack.Summary())
	}
	file := ack.BootFileNameOption()
	if file == "" {
		file = ack.BootFileName
	}
	return lease{a, file}, nil
}

func (c client) modifiers() []dhcpv4.Modifier {
	var out []dhcpv4.Modifier
	for _, o := range c.options {
		out = append(out, dhcpv4.WithOption(o))
	}
	return out
}

// ask sends a packet until an answer of that type comes. A NAK ends it as silence does.
func (c client) ask(ctx context.Context, w *wire, p *dhcpv4.DHCPv4, replies <-chan *dhcpv4.DHCPv4, want dhcpv4.MessageType) (*dhcpv4.DHCPv4, error) {
	for _, wait := range c.waits {
		if err := w.send(p); err != nil && !errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		limit := time.NewTimer(wait)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				limit.Stop()
				return nil, ctx.Err()
			case <-limit.C:
				waiting = false
			case r := <-replies:
				switch {
				case r.TransactionID != p.TransactionID:
				case r.MessageType() == want:
					limit.Stop()
					return r, nil
				case r.MessageType() == dhcpv4.MessageTypeNak:
					limit.Stop()
					return nil, errNoAnswer
				}
			}
		}
	}
	return nil, errNoAnswer
}
