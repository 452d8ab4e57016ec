package ndp

import (
	"context"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// reopenEvery is how often an interface that went away or is down is tried again.
// iPXE asks on for many seconds.
const reopenEvery = time.Second

// port is one interface we answer on.
type port struct {
	s    *Server
	name string
	limiter
	index int

	mu     sync.Mutex
	socket *dhcp.PacketSocket // nil while the interface is away
	group  int                // descriptor of the socket that is member of the group, or -1
}

// open binds a packet socket to the interface.
func (p *port) open() error {
	return p.s.In(func() error {
		ifi, err := dhcp.Interface(p.name)
		if err != nil {
			return err
		}
		socket, err := dhcp.OpenPacket(func(f func() error) error { return f() })
		if err != nil {
			return err
		}
		if err := socket.Hear(ifi.Index, unix.ETH_P_IPV6, allRoutersMAC, solicitations); err != nil {
			_ = socket.Close()
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.socket, p.index, p.group = socket, ifi.Index, joinRouters(ifi.Index)
		return nil
	})
}

func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket == nil {
		return
	}
	_ = p.socket.Close()
	if p.group >= 0 {
		_ = unix.Close(p.group)
	}
	p.socket = nil
}

// run answers until ctx ends, and opens the socket again whenever the interface
// was down or replaced by another of its name.
func (p *port) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.close)
	defer stop()
	for ctx.Err() == nil {
		p.mu.Lock()
		socket := p.socket
		p.mu.Unlock()
		if socket != nil {
			err := p.read(socket)
			if ctx.Err() != nil {
				return
			}
			p.close()
			p.s.Log.Debug("router solicitations: interface lost", "interface", p.name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reopenEvery):
		}
		if err := p.open(); err != nil {
			p.s.Log.Debug("router solicitations: interface still away", "interface", p.name, "error", err)
		}
	}
}

func (p *port) read(socket *dhcp.PacketSocket) error {
	buf := make([]byte, 2048)
	for {
		n, from, err := socket.Receive(buf)
		if err != nil {
			return err
		}
		outcome := p.handle(socket, buf[:n], from)
		p.s.Metrics.count(outcome)
		p.s.Log.Debug("router solicitation", "mac", from, "interface", p.name, "outcome", string(outcome))
	}
}

// handle answers one packet, or says why not. One over which we panic is lost: whoever
// can send it must not take the appliance down.
func (p *port) handle(socket *dhcp.PacketSocket, packet []byte, from hardware.MAC) (o Outcome) {
	defer func() {
		if r := recover(); r != nil {
			p.s.Log.Error("router solicitation panicked", "interface", p.name, "panic", r, "stack", string(debug.Stack()))
			o = SendFailed
		}
	}()
	s, outcome := Judge(packet, from, p.s.Booting)
	if outcome != "" {
		return outcome
	}
	if !p.allow(s.MAC, p.s.Now()) {
		return RateLimited
	}
	us, err := p.source()
	if err == nil {
		err = socket.Send(p.index, unix.ETH_P_IPV6, s.MAC, Advertise(us, s.Source))
	}
	if err != nil {
		p.s.Log.Warn("router advertisement not sent", "mac", s.MAC, "interface", p.name, "error", err)
		return SendFailed
	}
	return Answered
}

// source is read for each answer: there are few, and addresses change.
func (p *port) source() (a netip.Addr, err error) {
	err = p.s.In(func() error {
		ifi, err := dhcp.Interface(p.name)
		if err != nil {
			return err
		}
		addrs, err := ifi.Addrs()
		a = source(hardware.MAC(ifi.HardwareAddr), addrs)
		return err
	})
	return a, err
}
