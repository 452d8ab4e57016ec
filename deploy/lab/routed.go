package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

// RoutedSubnet is the network of the host that AddRouted makes.
var RoutedSubnet = netip.MustParsePrefix("10.88.0.0/24")

// Routed is a host in a network of its own; the lab's namespace is the router between
// that and the LAN. Its interface is ClientIface.
type Routed struct {
	*Namespace
	Addr     netip.Addr
	Upstream string // the router's interface towards it
}

// AddRouted adds such a host, with the second address of RoutedSubnet; the first is
// the router's. A lab has one at most.
func (l *Lab) AddRouted(ctx context.Context, name string) (*Routed, error) {
	if !nameRE.MatchString(name) {
		return nil, fmt.Errorf("host name %q: use up to 31 of a-z, 0-9 and -", name)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errors.New("lab is closed")
	}
	ns, err := makeNamespace(ctx, l.name+"-"+name)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	// A client like the others, so that Close and lab.json know it.
	l.clients = append(l.clients, &Client{Namespace: ns, lab: l})
	l.mu.Unlock()

	router := RoutedSubnet.Addr().Next()
	h := &Routed{Namespace: ns, Addr: router.Next(), Upstream: "up0"}
	cidr := func(a netip.Addr) string { return netip.PrefixFrom(a, RoutedSubnet.Bits()).String() }
	for _, args := range [][]string{
		{"-n", l.name, "link", "add", h.Upstream, "type", "veth", "peer", "name", ClientIface, "netns", ns.name},
		{"-n", l.name, "addr", "add", cidr(router), "dev", h.Upstream},
		{"-n", l.name, "link", "set", h.Upstream, "up"},
		{"-n", ns.name, "addr", "add", cidr(h.Addr), "dev", ClientIface},
		{"-n", ns.name, "link", "set", ClientIface, "up"},
		{"-n", ns.name, "route", "add", "default", "via", router.String()},
		{"netns", "exec", l.name, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"},
	} {
		if err := ip(ctx, args...); err != nil {
			return nil, err
		}
	}
	return h, l.saveState()
}
