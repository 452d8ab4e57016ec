package dhcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

// Search asks on an interface whether somebody gives addresses, and tells each server
// that answers, as often as it does; it ends after a few seconds, or with ctx. It takes
// no lease. in is as in Config.In. An error says what the process may not do, or that
// the interface is not there.
func Search(ctx context.Context, iface string, in func(func() error) error, heard func(Rival)) error {
	var index int
	var own hardware.MAC
	err := in(func() (err error) {
		index, own, _, err = lookup(iface)
		return err
	})
	if err != nil {
		return err
	}
	mac, xid := searchMAC(own), rand.Uint32()
	s, err := OpenPacket(in)
	if err != nil {
		return fmt.Errorf("search for DHCP servers on %s: %w", iface, err)
	}
	defer s.Close()
	// Who does not heed the broadcast flag answers to that MAC.
	if err := s.Hear(index, unix.ETH_P_IP, mac, toClients()); err != nil {
		return fmt.Errorf("search for DHCP servers on %s: %w", iface, err)
	}
	packet := frame(netip.AddrPortFrom(netip.IPv4Unspecified(), ClientPort), netip.AddrPortFrom(limitedBroadcast, ServerPort), discover(mac, xid))
	if err := s.Send(index, unix.ETH_P_IP, broadcastMAC, packet); err != nil {
		return fmt.Errorf("search for DHCP servers on %s: %w", iface, err)
	}
	again := time.AfterFunc(searchAgain, func() { _ = s.Send(index, unix.ETH_P_IP, broadcastMAC, packet) })
	defer again.Stop()
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	buf := make([]byte, maxPacket)
	for {
		n, from, err := s.Receive(buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENETDOWN):
			return fmt.Errorf("search for DHCP servers on %s: the interface is down (ip link set %s up)", iface, iface)
		case err != nil:
			return fmt.Errorf("search for DHCP servers on %s: %w", iface, err)
		}
		if r, ok := readOffer(buf[:n], mac, xid); ok && from != own {
			r.Interface, r.MAC = iface, from
			heard(r)
		}
	}
}

// toClients is the classic BPF program for datagrams to the DHCP client's port that are
// not fragments. Offset 0 is the IP header.
func toClients() []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 6},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 6},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 0x1fff, Jt: 4},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: ClientPort, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: maxPacket},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// searches looks for other servers on the port's link, at once and then now and again.
func (p *port) searches(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-p.look:
		default:
		}
		pause, least := reopenEvery, time.Duration(0)
		if p.current() != nil {
			pause, least = p.s.searchOnce(ctx, p), searchLeast
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			continue
		case <-p.look:
		}
		select { // the kernel tells of every change of every interface
		case <-ctx.Done():
		case <-time.After(least):
		}
	}
}

// searchOnce searches once, and returns for how long it need not be done again.
func (s *Server) searchOnce(ctx context.Context, p *port) time.Duration {
	began := s.Now()
	err := Search(ctx, p.name, s.In, func(r Rival) {
		if s.isOurServer(r.Server) {
			return
		}
		s.rivalMu.Lock()
		isNew := p.rivals.heard(r, s.Now())
		s.rivalMu.Unlock()
		if isNew {
			s.found(p)
		}
	})
	if ctx.Err() != nil {
		return 0
	}
	if err != nil { // we cannot know; that is no reason to answer nobody for ever
		s.Log.Warn("other DHCP servers were not searched for", "interface", p.name, "error", err)
	}
	s.rivalMu.Lock()
	gone := p.rivals.ended(began)
	left := p.rivals.list()
	s.rivalMu.Unlock()
	s.Metrics.rivals.WithLabelValues(p.name).Set(float64(len(left)))
	for _, r := range gone {
		s.Log.Info("the other DHCP server is gone", "interface", p.name, "server", r.Server, "server_mac", r.MAC)
	}
	if err == nil {
		s.found(p)
	}
	if len(left) > 0 {
		return min(searchSoon, s.SearchEvery)
	}
	return s.SearchEvery
}

// found tells what is known of a link now, where it has changed: a line that is seen, and
// whoever asked to be told.
func (s *Server) found(p *port) {
	networks, subnets := p.addresses(), s.View.Subnets()
	s.rivalMu.Lock()
	untold := p.rivals.untold(Findings(p.name, networks, subnets, p.rivals.list()))
	s.rivalMu.Unlock()
	for _, f := range untold {
		if f.Rival.Server.IsValid() {
			s.Log.Warn("another DHCP server answers", "reason", hardware.ReasonOtherDHCP, "interface", p.name, "subnet", f.Subnet,
				"server", f.Rival.Server, "server_mac", f.Rival.MAC, "offered", f.Rival.Offered, "detail", f.String())
		} else {
			s.Log.Warn("no DHCP server answers", "reason", hardware.ReasonNoOtherDHCP, "interface", p.name, "subnet", f.Subnet, "detail", f.String())
		}
		if s.Found != nil {
			s.Found(f)
		}
	}
}

// isOurServer reports whether an identifier is one that we use.
func (s *Server) isOurServer(id netip.Addr) bool {
	for _, p := range s.ports {
		if (Link{Networks: p.addresses()}).has(id) {
			return true
		}
	}
	for _, n := range s.View.Subnets() {
		if n.Spec.Advertise == id {
			return true
		}
	}
	return false
}

// isSearch reports whether a packet is of a search of ours, of this process or another
// on this machine.
func (s *Server) isSearch(m hardware.MAC) bool {
	if m[0] != searchFirst {
		return false
	}
	for _, p := range s.ports {
		if _, own := p.hardware(); searchMAC(own) == m {
			return true
		}
	}
	return false
}

// reserved reports whether an address is in a record of ours.
func (s *Server) reserved(a netip.Addr) bool {
	_, ok := s.View.HardwareByAddress(a)
	return ok
}

// authority reports whether we alone give addresses in the Subnet, as far as we know. It
// is false until the first search of its link has ended. Behind relays nobody is
// searched for.
func (s *Server) authority(n *hardware.Subnet) bool {
	if s.SearchEvery <= 0 {
		return true
	}
	for _, p := range s.ports {
		if p.number != ServerPort || !covers(n.Spec.Prefix, netip.Addr{}, Link{Networks: p.addresses()}) {
			continue
		}
		s.rivalMu.Lock()
		alone := p.rivals.searched && len(p.rivals.known) == 0
		s.rivalMu.Unlock()
		if !alone {
			return false
		}
	}
	return true
}

// Rivals are the other DHCP servers that are heard now, by interface, and what that
// means.
func (s *Server) Rivals() (out []Finding) {
	for _, p := range s.ports {
		s.rivalMu.Lock()
		known, searched := p.rivals.list(), p.rivals.searched
		s.rivalMu.Unlock()
		if searched {
			out = append(out, Findings(p.name, p.addresses(), s.View.Subnets(), known)...)
		}
	}
	return out
}
