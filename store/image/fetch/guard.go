package fetch

import (
	"net/netip"
	"net/url"
	"sync/atomic"
	"syscall"
)

// guard keeps a server elsewhere from leading us, by a redirect, to what listens on
// this machine only, or to link-local addresses, where clouds keep credentials. It is
// for one source.
type guard struct {
	strangers  bool
	proxied    atomic.Bool // the request under way: what is dialled is the proxy
	redirected atomic.Bool
	local      atomic.Bool // the first server is one of those itself
}

// redirect judges the URL that a server leads to.
func (g *guard) redirect(first, next *url.URL) error {
	g.redirected.Store(true)
	if from, err := netip.ParseAddr(first.Hostname()); err == nil && ours(from) {
		g.local.Store(true)
	}
	if to, err := netip.ParseAddr(next.Hostname()); err == nil && ours(to) && !g.local.Load() {
		return redirectedHere()
	}
	return nil
}

// dial judges an address of a name, before anything is sent to it.
func (g *guard) dial(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || g.proxied.Load() || !ours(at.Addr()) {
		return nil
	}
	if g.strangers {
		return localHere()
	}
	if !g.redirected.Load() {
		g.local.Store(true)
		return nil
	}
	if !g.local.Load() {
		return redirectedHere()
	}
	return nil
}

// ours reports whether an address means another machine to everybody.
func ours(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified()
}

func localHere() error {
	return final("the URL is of an address of this machine or link, which is not read for you (use an address that others can reach too)")
}

func redirectedHere() error {
	return final("the server redirects to an address of this machine or link, which is not followed (give the URL itself)")
}
