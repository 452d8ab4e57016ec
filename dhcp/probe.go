package dhcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// probeTime is how long an address is asked after. RFC 5227 would take five seconds;
	// a client waits for its first offer about one, and what is in use answers at once.
	probeTime = 350 * time.Millisecond
	// probeAgain is when it is asked a second time: the first may be lost.
	probeAgain = 120 * time.Millisecond
	// maxProbes bounds the packets that wait for one.
	maxProbes = 4096
	// maxConflicts is how many addresses in a row are found in use before a packet is
	// given up.
	maxConflicts = 3
)

// prober asks whether somebody uses an address: with ARP on the link, with an ICMP echo
// where a router is between. What waits for the answer is the client's packet; the
// queue that it came from goes on.
type prober struct {
	s    *Server
	arp  *PacketSocket
	icmp *net.IPConn
	id   uint16

	mu   sync.Mutex
	open map[netip.Addr]*probe
}

// probe is one question.
type probe struct {
	addr  netip.Addr
	mac   hardware.MAC // the client's
	link  *port        // nil: over routers
	job   *job
	timer *time.Timer
	again bool
}

// verdict is the answer: used by whoever that is, where it could be seen.
type verdict struct {
	addr   netip.Addr
	in     bool
	usedBy hardware.MAC
}

func newProber(s *Server) *prober {
	return &prober{s: s, id: uint16(rand.Uint32()), open: map[netip.Addr]*probe{}}
}

// listen opens the sockets.
func (p *prober) listen(ctx context.Context) error {
	var err error
	if p.arp, err = OpenPacket(p.s.In); err != nil {
		return err
	}
	// On every interface: which are ours may change.
	if err := p.arp.Hear(0, unix.ETH_P_ARP, hardware.MAC{}, arpClaims()); err != nil {
		_ = p.arp.Close()
		return err
	}
	err = p.s.In(func() error {
		pc, err := new(net.ListenConfig).ListenPacket(ctx, "ip4:icmp", "0.0.0.0")
		if err != nil {
			return err
		}
		p.icmp = pc.(*net.IPConn)
		return attach(p.icmp, echoReplies(p.id))
	})
	if err != nil {
		p.close()
	}
	return err
}

func attach(c *net.IPConn, filter []unix.SockFilter) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	cerr := rc.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	})
	return errors.Join(cerr, err)
}

// close ends the reads.
func (p *prober) close() {
	if p.arp != nil {
		_ = p.arp.Close()
	}
	if p.icmp != nil {
		_ = p.icmp.Close()
	}
}

// hearARP reads what machines say of themselves until the socket is closed.
func (p *prober) hearARP(ctx context.Context) {
	buf := make([]byte, 256)
	for ctx.Err() == nil {
		n, _, err := p.arp.Receive(buf)
		switch {
		case err == nil:
			if a, who, ok := readARP(buf[:n]); ok {
				p.heard(a, who)
			}
		case !errors.Is(err, unix.ENETDOWN):
			return
		}
	}
}

// hearICMP reads the answers to echoes until the socket is closed.
func (p *prober) hearICMP(ctx context.Context) {
	buf := make([]byte, 512)
	for ctx.Err() == nil {
		n, from, err := p.icmp.ReadFrom(buf)
		if err != nil {
			return
		}
		if a, ok := netip.AddrFromSlice(from.(*net.IPAddr).IP.To4()); ok && readICMP(buf[:n], p.id) {
			p.heard(a, hardware.MAC{})
		}
	}
}

// ask holds a packet until it is known whether somebody but its sender uses an address.
// A packet that waits for the same is replaced: the client has asked again. False: too
// many wait.
func (p *prober) ask(j *job, a netip.Addr, mac hardware.MAC, link *port) bool {
	p.mu.Lock()
	q := p.open[a]
	if q != nil && q.mac == mac {
		q.job, j = j, q.job
		p.mu.Unlock()
		p.s.recycle(j)
		return true
	}
	if q != nil || len(p.open) >= maxProbes {
		p.mu.Unlock()
		return false
	}
	q = &probe{addr: a, mac: mac, link: link, job: j}
	p.open[a] = q
	q.timer = time.AfterFunc(probeAgain, func() { p.late(q) })
	p.mu.Unlock()
	p.send(q, 1)
	return true
}

// late is called when nobody has answered for a while.
func (p *prober) late(q *probe) {
	p.mu.Lock()
	if p.open[q.addr] != q {
		p.mu.Unlock()
		return
	}
	if !q.again {
		q.again = true
		q.timer.Reset(probeTime - probeAgain)
		p.mu.Unlock()
		p.send(q, 2)
		return
	}
	delete(p.open, q.addr)
	p.mu.Unlock()
	p.s.nobodyAt(q.addr, q.mac)
	p.resume(q, verdict{addr: q.addr})
}

// heard is told that somebody has an address.
func (p *prober) heard(a netip.Addr, who hardware.MAC) {
	p.mu.Lock()
	q := p.open[a]
	if q == nil || q.mac == who { // the client itself may still have it
		p.mu.Unlock()
		return
	}
	delete(p.open, a)
	q.timer.Stop()
	p.mu.Unlock()
	p.resume(q, verdict{addr: a, in: true, usedBy: who})
}

// resume puts the packet back into its queue.
func (p *prober) resume(q *probe, v verdict) {
	q.job.verdict = v
	p.s.enqueue(q.job)
}

// send asks once. What cannot be sent is as if nobody answered: the client will find
// out for itself (RFC 2131 section 4.4.1).
func (p *prober) send(q *probe, seq uint16) {
	var err error
	if q.link != nil {
		index, mac := q.link.hardware()
		err = p.s.tx.Send(index, unix.ETH_P_ARP, broadcastMAC, arpProbe(mac, q.addr))
	} else {
		_, err = p.icmp.WriteTo(icmpProbe(p.id, seq), &net.IPAddr{IP: q.addr.AsSlice()})
	}
	if err != nil {
		p.s.Log.Debug("address not asked after", "address", q.addr, "error", err)
	}
}
