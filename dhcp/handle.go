package dhcp

import (
	"context"
	"log/slog"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// job is one received packet. Jobs are reused.
type job struct {
	buf  [maxPacket]byte
	n    int
	port *port
	link Link
	waited
}

// waited is what is known of a packet that has waited for a probe.
type waited struct {
	again     bool // it has been looked at before
	verdict   verdict
	conflicts int // addresses that were found in use for it
}

// handle answers one packet. parked: it waits for a probe, and the job is not the
// caller's any more.
func (s *Server) handle(ctx context.Context, j *job) (parked bool) {
	var gone losses
	s.exclusive(j.mac(), func() { parked = s.answer(ctx, j, &gone) })
	s.forget(ctx, gone)
	return parked
}

// answer calls the pure functions in their order and does what they say. Persist, then
// answer, then tell.
func (s *Server) answer(ctx context.Context, j *job, gone *losses) (parked bool) {
	now := s.Now()
	if s.isSearch(j.mac()) {
		return false
	}
	c, reason := Classify(j.buf[:j.n])
	if reason != "" {
		s.Metrics.received(c.Type, reason)
		s.Log.Debug("dhcp packet ignored", "interface", j.port.name, "reason", reason)
		return false
	}
	p, reason, detail := Locate(&c, j.link, s.View, func(n *hardware.Subnet) bool { return s.booting(n, c.MAC, now) })
	if reason == hardware.ReasonUnknownMachine {
		s.stranger(&c, j, reason, now)
		return false
	}
	if p.Hardware == nil && !j.again && !s.stranger(&c, j, "", now) {
		return false
	}
	alone := reason != "" || s.authority(p.Subnet)
	if !alone {
		l, _ := s.Leases.Get(p.Subnet.Meta.Name, c.MAC)
		if why := yields(&c, &p, l.State(now) == hardware.LeaseActive); why != "" {
			reason, detail = hardware.ReasonOtherDHCP, why
		}
	}
	store, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if reason == "" && p.Pooled() && !j.link.ProxyPort && c.Type != dhcpv4.MessageTypeInform {
		if parked, reason, detail = s.lend(store, &c, j, &p, gone, now); parked {
			return true
		}
	}
	if reason == "" {
		reason, detail = s.taken(&c, j, &p, now)
	}
	o := Observation{MAC: c.MAC, Hardware: p.UID(), Firmware: c.Firmware}
	if reason != "" {
		s.tell(&c, j, &p, o, Decision{Reason: reason, Detail: detail})
		return false
	}
	var boot *hardware.Boot
	if needsBoot(&c, j.link) {
		b, err := s.boot(store, &c, j.link, &p)
		o.Boot = b.ID
		if err != nil && (b.Next.Target == "" || b.Next.Netboots()) {
			s.tell(&c, j, &p, o, Decision{Reason: hardware.ReasonStoreFailed, Detail: err.Error()})
			return false
		}
		boot = &b
	}
	d := Decide(&c, j.link, &p, boot, Files{s.HTTPPort, s.Programs}, now)
	if !alone && yieldsNak(&c, j.link, &p, &d, s.reserved) {
		d = Decision{Reason: hardware.ReasonOtherDHCP, Detail: d.Detail + "; the address may be the other server's"}
	}
	if err := s.persist(store, &c, &p, boot, &d, gone, now); err != nil {
		s.Log.Error("lease not written", "mac", c.MAC, "reason", hardware.ReasonStoreFailed, "error", err)
		s.Metrics.received(c.Type, hardware.ReasonStoreFailed)
		failed := o
		failed.Reason, failed.Detail = hardware.ReasonStoreFailed, err.Error()
		s.Boots.Observe(failed)
		if d.Boot == hardware.ReasonBootProgram || d.Boot == hardware.ReasonBootScript {
			return false // its boot is not on record: the worker's token would be refused
		}
		if p.Pooled() && d.Lease != nil {
			// What is on disk may be said again, and nothing else: after a restart we would
			// lend the address to another. The disk took its time.
			if p.Term = s.remaining(&p, s.Now()); p.Term <= 0 {
				return false
			}
			d = Decide(&c, j.link, &p, boot, Files{s.HTTPPort, s.Programs}, now)
		}
	}
	if d.Reply != nil {
		s.send(&c, j, &p, &d, now)
		if p.Denied != "" && d.Type() == dhcpv4.MessageTypeNak {
			s.surrender(store, &c, &p, now)
		}
	}
	s.tell(&c, j, &p, o, d)
	return false
}

// booting reports whether a machine without a record has an address of the Subnet, or an
// open boot: it was let in as firmware, and what it has started asks as no firmware does.
func (s *Server) booting(n *hardware.Subnet, mac hardware.MAC, now time.Time) bool {
	if n.Proxy() {
		return false // its operating system asks the other server
	}
	if l, ok := s.Leases.Get(n.Meta.Name, mac); ok && l.State(now) == hardware.LeaseActive {
		return true
	}
	_, ok := s.Boots.Current(hardware.StrangerUID(mac), mac)
	return ok
}

// boot finds or starts the boot a packet belongs to.
func (s *Server) boot(ctx context.Context, c *Class, link Link, p *Place) (hardware.Boot, error) {
	if c.Type != dhcpv4.MessageTypeDiscover || link.ProxyPort {
		// Firmware comes to port 4011 before it has a program: where one was sent
		// already, its DISCOVER was missed.
		b, ok := s.Boots.Current(p.UID(), c.MAC)
		if ok && (!link.ProxyPort || c.IPXE() || b.Phase < hardware.PhaseProgram) {
			return b, nil
		}
	}
	return s.Boots.FirstPacket(ctx, FirstPacket{
		Hardware: p.UID(), MAC: c.MAC, XID: c.XID, Firmware: c.Firmware, IPXE: c.IPXE(), Subnet: p.Subnet,
	})
}

// persist makes durable what the reply will promise.
func (s *Server) persist(ctx context.Context, c *Class, p *Place, boot *hardware.Boot, d *Decision, gone *losses, now time.Time) error {
	client := d.Client
	if d.Lease != nil {
		if err := s.Leases.Confirm(ctx, *d.Lease); err != nil {
			return err
		}
		s.settle(p, d.Lease.MAC, gone, now)
		if d.Drop {
			if err := s.Leases.Delete(ctx, d.Lease.Subnet, c.MAC); err != nil {
				return err
			}
			s.settle(p, c.MAC, gone, now)
		}
		if d.Type() == dhcpv4.MessageTypeAck {
			client = p.Addr
		}
	}
	if boot == nil || !client.IsValid() {
		return nil
	}
	return s.Boots.Acked(ctx, Acked{
		Hardware: p.UID(), Boot: boot.ID, Client: client, Server: p.Server, Program: d.Boot == hardware.ReasonBootProgram,
		Proxied: p.Proxied(),
	})
}

func (s *Server) send(c *Class, j *job, p *Place, d *Decision, since time.Time) {
	err := s.transmit(j.port, Route(c, j.link, d.Reply), replyFrom(j.link, p), d.Reply.ToBytes())
	s.Metrics.sent(d.Type(), err, s.Now().Sub(since))
	if err != nil {
		s.Log.Warn("dhcp reply not sent", "mac", c.MAC, "interface", j.port.name, "error", err)
	}
}

// tell reports a decision about a known machine: one line, one count, one event,
// and an event more for the boot file.
func (s *Server) tell(c *Class, j *job, p *Place, o Observation, d Decision) {
	s.Metrics.received(c.Type, d.Reason)
	attrs := []slog.Attr{
		slog.String("mac", c.MAC.String()),
		slog.String("hardware", p.Name()),
		slog.String("interface", j.port.name),
		slog.String("type", typeLabel(c.Type)),
		slog.String("reason", string(d.Reason)),
		slog.String("detail", d.Detail),
	}
	if d.Boot != "" {
		attrs = append(attrs,
			slog.String("firmware", string(c.Firmware)), slog.String("boot", o.Boot),
			slog.String("boot_reason", string(d.Boot)), slog.String("file", d.File))
	}
	level := slog.LevelInfo
	if p.Hardware == nil {
		s.Strangers.told(c.MAC, d.Reason)
		if d.Type() != dhcpv4.MessageTypeAck {
			level = slog.LevelDebug
		}
	}
	// An operating system beside another server asks all its life. What it says to that
	// one when it starts, its REQUEST, shows that it is up.
	quiet := p.Proxied() && !c.Netboots()
	if quiet {
		level = slog.LevelDebug
	}
	s.Log.LogAttrs(context.Background(), level, "dhcp", attrs...)
	if quiet && c.Type != dhcpv4.MessageTypeRequest {
		return
	}
	o.Reason, o.Detail = d.Reason, d.Detail
	s.Boots.Observe(o)
	if d.Reason == hardware.ReasonDeclined {
		o.Reason, o.Detail = hardware.ReasonAddressInUse, d.Detail+", says the machine"
		s.Boots.Observe(o)
	}
	if d.Boot != "" {
		o.Reason, o.Detail = d.Boot, d.File
		if d.BootDetail != "" {
			o.Detail = d.BootDetail
		}
		s.Boots.Observe(o)
	}
}

// stranger notes a machine without a record, and why it gets no answer; empty: it may
// get one. False: there are too many of them.
func (s *Server) stranger(c *Class, j *job, reason hardware.Reason, now time.Time) bool {
	ok := s.Strangers.seen(c, j.port.name, now)
	if !ok {
		reason = hardware.ReasonRateLimited
	}
	s.Metrics.strangers.Set(float64(s.Strangers.len()))
	if reason == "" {
		return true
	}
	s.Metrics.received(c.Type, reason)
	s.Log.Debug("dhcp", "mac", c.MAC, "interface", j.port.name, "type", typeLabel(c.Type), "reason", reason)
	return ok
}
