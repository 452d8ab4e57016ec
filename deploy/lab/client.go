package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// ClientIface is the name of a client's interface inside its namespace.
const ClientIface = "eth0"

// Client is a machine made of a namespace only: a veth pair joins its eth0 to
// the LAN. DHCP clients, curl and tftp run in it as they would on a host.
type Client struct {
	*Namespace
	MAC net.HardwareAddr
	lab *Lab
}

// AddVeth adds a client called name; its interface has the given MAC, or a
// random local one if mac is nil, is up, and has no IPv4 address.
func (l *Lab) AddVeth(ctx context.Context, name string, mac net.HardwareAddr) (*Client, error) {
	if !nameRE.MatchString(name) {
		return nil, fmt.Errorf("client name %q: use up to 31 of a-z, 0-9 and -", name)
	}
	if mac == nil {
		mac = RandomMAC()
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errors.New("lab is closed")
	}
	port := fmt.Sprintf("veth%d", len(l.clients))
	ns, err := makeNamespace(ctx, l.name+"-"+name)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	c := &Client{Namespace: ns, MAC: mac, lab: l}
	l.clients = append(l.clients, c)
	l.mu.Unlock()

	for _, args := range [][]string{
		{"-n", l.name, "link", "add", port, "type", "veth", "peer", "name", ClientIface, "address", mac.String(), "netns", ns.name},
		{"-n", l.name, "link", "set", port, "master", bridge, "up"},
		{"-n", ns.name, "link", "set", ClientIface, "up"},
	} {
		if err := ip(ctx, args...); err != nil {
			return nil, err
		}
	}
	return c, l.saveState()
}

// SetAddr gives the client's interface a static address, for clients that do
// not speak DHCP.
func (c *Client) SetAddr(ctx context.Context, p netip.Prefix) error {
	return ip(ctx, "-n", c.name, "addr", "replace", p.String(), "dev", ClientIface)
}

// FlushAddrs takes every address from the client's interface, as a machine has
// none after a restart.
func (c *Client) FlushAddrs(ctx context.Context) error {
	return ip(ctx, "-n", c.name, "addr", "flush", "dev", ClientIface)
}

// RandomMAC returns an address under QEMU's locally administered prefix
// 52:54:00.
func RandomMAC() net.HardwareAddr {
	mac, err := net.ParseMAC("52:54:00:" + randomHex(1) + ":" + randomHex(1) + ":" + randomHex(1))
	if err != nil {
		panic(err) // unreachable: the text is always a MAC
	}
	return mac
}
