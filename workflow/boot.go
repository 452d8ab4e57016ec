package workflow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Grant is what a boot script may contain for one machine and one asking address.
type Grant struct {
	Hardware *hardware.Hardware
	Boot     hardware.Boot
	Next     hardware.Next
	// Token is empty when the asking address is not this boot's.
	Token string
	// Reason is ReasonScriptSent, or why there is no token.
	Reason hardware.Reason
}

// FirstPacket is a packet of firmware or iPXE that starts a boot or belongs to one.
type FirstPacket struct {
	Hardware string // uid, or hardware.StrangerUID
	MAC      hardware.MAC
	XID      uint32
	Firmware hardware.Firmware
	IPXE     bool // the sender is an iPXE
	// Subnet is the name of the Subnet that it came from; Discovery is that Subnet's.
	Subnet    string
	Discovery bool
	// Proxied: another server gives the addresses in that Subnet.
	Proxied bool
}

// FirstPacket is a DHCPDISCOVER (or a request to port 4011) of a netbooting
// client: it starts a boot or belongs to the current one. The boot is on disk when
// it returns; with an error it is what it would have been.
func (e *Engine) FirstPacket(ctx context.Context, f FirstPacket) (hardware.Boot, error) {
	uid := f.Hardware
	if mac, ok := hardware.StrangerMAC(uid); ok {
		return e.strangerPacket(f, mac), nil
	}
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		h, mc, err := e.load(ctx, uid)
		if err != nil {
			return hardware.Boot{}, err
		}
		now := e.c.Now()
		if !mc.Boot.Supersedes(f.XID, f.Firmware, f.IPXE, now) || !m.begins(mc.Boot, now) {
			b := *mc.Boot
			b.Next = e.next(ctx, h, mc)
			return b, nil
		}
		b := hardware.Boot{
			ID: NewID(now), Hardware: uid, Started: now, Deadline: now.Add(hardware.BootDeadline),
			MAC: f.MAC, XID: f.XID, Firmware: f.Firmware, Discovery: f.Discovery,
		}
		var why string
		b.Chain, why = PickChain(h, f.Firmware, mc.Boot, f.Proxied)
		before := mc.Boot
		mc.Boot = &b
		b.Next = e.next(ctx, h, mc)
		// The worker of an earlier boot that is still connected shows that the machine did
		// not restart: what asks since then is forged, or its BMC.
		alive := before != nil && m.session != nil && m.session.boot != before.ID
		looped := !alive && stopLoop(&mc.Status, before, b.Next, now)
		if looped {
			h.Status = mc.Status
			b.Next = e.next(ctx, h, mc)
		}
		detail := fmt.Sprintf("%s on %s; next: %s (%s)", f.Firmware, f.MAC, b.Next.Target, b.Next.Reason.Sentence())
		if b.Next.Netboots() && b.Chain == hardware.ChainGRUB {
			detail += throughGRUB + why
		}
		events := []Event{e.event(h, b.ID, hardware.ReasonBootStarted, detail)}
		if looped {
			events = append(events, e.event(h, b.ID, hardware.ReasonBootLoop, loopWords(&mc.Status.Netboots)))
		}
		err = e.c.Store.Commit(ctx, &Change{Machine: mc, Events: events})
		if errors.Is(err, ErrConflict) {
			continue
		}
		return b, err
	}
}

// Bounds of the boots of one machine that get no boot program: they cost who forges them
// packets alone, and us several writes each.
const (
	beginRate  = 0.2 // a second
	beginBurst = 8
	// maxPrograms is as far as it is counted how often one was named.
	maxPrograms = 4
)

// begins reports whether a boot may begin over b. The caller holds m.mu.
func (m *machine) begins(b *hardware.Boot, now time.Time) bool {
	if b == nil || b.Closed || now.After(b.Deadline) || b.Phase >= hardware.PhaseProgram {
		return true
	}
	return m.begun.take(now, beginRate, beginBurst)
}

// stopLoop counts the boot before the one that begins at now and boots next, and puts
// the machine on hold where too many of them came to nothing. One that goes to its disk
// is not held: its system might start the next time. A disk without a system never
// does, and that is nothing to tell. What a machine is held for stays as it was.
func stopLoop(s *hardware.Status, before *hardware.Boot, next hardware.Next, now time.Time) bool {
	if s.Hold {
		return false
	}
	s.Netboots.Add(before, next, now)
	if next.Target == hardware.TargetDisk && s.State != hardware.StateProvisioned && !s.AwaitOS {
		s.Netboots = hardware.Netboots{}
	}
	if !s.Netboots.Looping() || next.Target != hardware.TargetWorker {
		return false
	}
	s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonBootLoop, now
	return true
}

// progress notes that something came of the machine's boot, and reports whether that
// is news.
func progress(mc *Machine) bool {
	news := mc.Status.Netboots != hardware.Netboots{}
	mc.Status.Netboots = hardware.Netboots{}
	if mc.Boot != nil && !mc.Boot.Progress {
		b := *mc.Boot
		b.Progress = true
		mc.Boot, news = &b, true
	}
	return news
}

// Current is the open boot of a machine's NIC, with what it boots as things are
// now; false where it has none.
func (e *Engine) Current(ctx context.Context, uid string, mac hardware.MAC) (hardware.Boot, bool) {
	if mac, ok := hardware.StrangerMAC(uid); ok {
		return e.strangers.open(mac)
	}
	h, mc, err := e.load(ctx, uid)
	if err != nil || mc.Boot == nil || mc.Boot.Closed || mc.Boot.MAC != mac {
		return hardware.Boot{}, false
	}
	b := *mc.Boot
	b.Next = e.next(ctx, h, mc)
	return b, true
}

// updateBoot changes the machine's current boot: what, called with a copy, may move its
// phase on and fill in what was learnt. A boot that is not the current one is
// left alone.
func (e *Engine) updateBoot(ctx context.Context, uid, boot string, what func(*hardware.Boot) bool) error {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		mc, err := e.c.Store.Machine(ctx, uid)
		if err != nil {
			return err
		}
		if mc.Boot == nil || mc.Boot.ID != boot {
			return nil
		}
		b := *mc.Boot
		if !what(&b) {
			return nil
		}
		mc.Boot = &b
		err = e.c.Store.Commit(ctx, &Change{Machine: mc})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// Acked notes the addresses of a boot: the client's, which alone gets the token,
// and ours as the client was told; program says that an iPXE of ours was named.
func (e *Engine) Acked(ctx context.Context, uid, boot string, client, server netip.Addr, program bool) error {
	if mac, ok := hardware.StrangerMAC(uid); ok {
		e.strangerAcked(mac, boot, client, server, program)
		return nil
	}
	return e.updateBoot(ctx, uid, boot, func(b *hardware.Boot) bool {
		named := program && b.Programs < maxPrograms
		if b.Client == client && b.Server == server && !named {
			return false
		}
		b.Client, b.Server = client, server
		b.Reach(hardware.PhaseAddress, e.c.Now())
		if named {
			b.Programs++
		}
		return true
	})
}

// Reached moves a boot's phase on; a boot that goes on keeps its token alive.
func (e *Engine) Reached(ctx context.Context, uid, boot string, p hardware.Phase) error {
	if mac, ok := hardware.StrangerMAC(uid); ok {
		e.strangerReached(mac, boot, p)
		return nil
	}
	return e.updateBoot(ctx, uid, boot, func(b *hardware.Boot) bool {
		late := b.Deadline.Sub(e.c.Now()) < hardware.BootDeadline/2
		if b.Phase >= p && !late {
			return false
		}
		b.Reach(p, e.c.Now())
		b.Deadline = e.c.Now().Add(hardware.BootDeadline)
		return true
	})
}

// Script decides what the boot script of a machine is for one asking address.
// Asking never uses anything up. ErrNotFound where uid is nobody's.
func (e *Engine) Script(ctx context.Context, uid string, client netip.Addr) (Grant, error) {
	if mac, ok := hardware.StrangerMAC(uid); ok {
		return e.strangerScript(mac, client)
	}
	h, mc, err := e.load(ctx, uid)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Hardware: h, Next: e.next(ctx, h, mc), Reason: hardware.ReasonScriptSent}
	if mc.Boot != nil {
		g.Boot = *mc.Boot
	}
	if g.Next.Target != hardware.TargetWorker {
		return g, nil
	}
	b := mc.Boot
	if b == nil || b.Closed || !b.Client.IsValid() || b.Client != client.Unmap() || e.c.Now().After(b.Deadline) {
		g.Reason = hardware.ReasonScriptNoToken
		return g, nil
	}
	if b.Next != g.Next { // a workflow was created after the first packet
		err := e.updateBoot(ctx, uid, b.ID, func(b *hardware.Boot) bool {
			if b.WorkerKey != nil {
				return false // who was let in for less is not let in for more
			}
			b.Next = g.Next
			return true
		})
		if err != nil {
			return Grant{}, err
		}
	}
	g.Token = bootToken(e.c.TokenKey, b)
	return g, nil
}

// Next is NextBoot for the machine as it is now.
func (e *Engine) Next(ctx context.Context, uid string) (hardware.Next, error) {
	h, mc, err := e.load(ctx, uid)
	if err != nil {
		return hardware.Next{}, err
	}
	return e.next(ctx, h, mc), nil
}

func (e *Engine) load(ctx context.Context, uid string) (*hardware.Hardware, *Machine, error) {
	h, err := e.c.Store.Hardware(ctx, uid)
	if err != nil {
		return nil, nil, err
	}
	mc, err := e.c.Store.Machine(ctx, uid)
	if err != nil {
		return nil, nil, err
	}
	h.Status = mc.Status
	return h, mc, nil
}

// next is NextBoot for a machine as it is now.
func (e *Engine) next(ctx context.Context, h *hardware.Hardware, mc *Machine) hardware.Next {
	return NextBoot(h, Circumstances{Active: e.isActive(ctx, mc), Discovery: mc.Boot != nil && mc.Boot.Discovery})
}

// isActive reports whether the machine's workflow has not ended.
func (e *Engine) isActive(ctx context.Context, mc *Machine) bool {
	if mc.Status.Workflow == "" {
		return false
	}
	w, err := e.c.Store.Workflow(ctx, mc.Status.Workflow)
	return err == nil && w.Status.HardwareUID == mc.UID && !w.Status.State.Ended()
}

// event makes an event of a machine.
func (e *Engine) event(h *hardware.Hardware, boot string, r hardware.Reason, detail string) Event {
	now := e.c.Now()
	return Event{Hardware: h.Meta.UID, Machine: h.Meta.Name, Boot: boot, Reason: r, Detail: detail, Count: 1, First: now, Last: now}
}

// note records an event that changes nothing.
func (e *Engine) note(h *hardware.Hardware, boot string, r hardware.Reason, detail string) {
	e.c.Note(e.event(h, boot, r, detail))
}

// OSSeen notes that the installed system asked for its address: the disk does start.
func (e *Engine) OSSeen(ctx context.Context, h *hardware.Hardware, boot string) error {
	if h.Status.Netboots.Count == 0 {
		e.note(h, boot, hardware.ReasonOSSeen, "")
		return nil
	}
	m := e.machine(h.Meta.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.change(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		mc.Status.Netboots = hardware.Netboots{}
		ev := e.event(h, boot, hardware.ReasonOSSeen, "")
		return &ev, nil
	})
}

// Observe records what a machine was seen to do, against its current boot.
func (e *Engine) Observe(h *hardware.Hardware, boot string, r hardware.Reason, detail string, bytes int64, took time.Duration) {
	ev := e.event(h, boot, r, detail)
	ev.Bytes, ev.Took = bytes, hardware.Duration(took)
	e.c.Note(ev)
}
