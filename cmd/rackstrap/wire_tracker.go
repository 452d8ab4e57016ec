package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/tftp"
	"github.com/rackstrap/rackstrap/workflow"
)

// recordView is what the packet paths read of the records.
type recordView interface {
	HardwareByUID(uid string) (*hardware.Hardware, bool)
	HardwareByMAC(mac hardware.MAC) (*hardware.Hardware, bool)
	Machine(uid string) (workflow.Machine, bool)
	BootingAt(client netip.Addr) (workflow.Machine, bool)
}

// tracker tells the engine what machines were seen to fetch. It knows a client by
// the address that was ACKed to its boot. That serves the timeline only; nothing
// is allowed because of it.
type tracker struct {
	engine *workflow.Engine
	view   recordView
	log    *slog.Logger

	mu      sync.Mutex
	clients map[netip.Addr]clientRef // at most maxClients
	holders map[netip.Addr]holder
}

// bootRef names a boot; uid may be hardware.StrangerUID.
type bootRef struct{ uid, boot string }

// clientRef is the boot of an address, and when it was last asked for.
type clientRef struct {
	bootRef
	at time.Time
}

// holder is who has the lease of an address.
type holder struct {
	mac     hardware.MAC
	expires time.Time
}

// maxClients bounds the addresses that are remembered. Those that are forgotten are
// found by their boot, which takes longer.
const maxClients = 16 << 10

var _ tftp.Observer = (*tracker)(nil)

func newTracker(e *workflow.Engine, v recordView, log *slog.Logger) *tracker {
	return &tracker{engine: e, view: v, log: log, clients: map[netip.Addr]clientRef{}, holders: map[netip.Addr]holder{}}
}

// leased notes who has an address. There is one entry for each address that was ever
// lent or reserved.
func (t *tracker) leased(leases ...hardware.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range leases {
		switch {
		case !l.Declined && !l.Released:
			t.holders[l.Addr] = holder{l.MAC, l.Expires}
		case t.holders[l.Addr].mac == l.MAC:
			delete(t.holders, l.Addr)
		}
	}
}

// unleased forgets the lease of an address that another server gives by now.
func (t *tracker) unleased(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.holders, a)
}

// holds reports whether nobody else has a lease of the address. A boot's token goes to
// the boot's address, and a pool may have lent that to another since.
func (t *tracker) holds(h *hardware.Hardware, mac hardware.MAC, client netip.Addr) bool {
	t.mu.Lock()
	last, ok := t.holders[client.Unmap()]
	t.mu.Unlock()
	if !ok || last.mac == mac || time.Now().After(last.expires) {
		return true
	}
	_, own := h.NIC(last.mac)
	return own
}

func (t *tracker) acked(client netip.Addr, ref bootRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if len(t.clients) >= maxClients {
		maps.DeleteFunc(t.clients, func(_ netip.Addr, r clientRef) bool { return now.Sub(r.at) > hardware.BootDeadline })
	}
	if len(t.clients) >= maxClients {
		clear(t.clients)
	}
	t.clients[client.Unmap()] = clientRef{ref, now}
}

// who finds the boot of an address, else the machine of a MAC that the client named.
func (t *tracker) who(client netip.Addr, mac hardware.MAC) (bootRef, bool) {
	t.mu.Lock()
	known, ok := t.clients[client.Unmap()]
	if ok {
		known.at = time.Now()
		t.clients[client.Unmap()] = known
	}
	t.mu.Unlock()
	if ok {
		return t.registered(known.bootRef), true
	}
	// after a restart of the daemon the boots under way are in the store only
	if m, booting := t.view.BootingAt(client.Unmap()); booting {
		ref := bootRef{m.UID, m.Boot.ID}
		t.acked(client, ref)
		return ref, true
	}
	if b, booting := t.engine.StrangerAt(client.Unmap()); booting {
		ref := bootRef{b.Hardware, b.ID}
		t.acked(client, ref)
		return t.registered(ref), true
	}
	if h, known := t.view.HardwareByMAC(mac); known {
		return bootRef{uid: h.Meta.UID}, true
	}
	if uid := hardware.StrangerUID(mac); !mac.IsZero() {
		if _, booting := t.engine.Current(context.Background(), uid, mac); booting {
			return bootRef{uid: uid}, true
		}
	}
	return bootRef{}, false
}

// registered is ref, or the same boot of the record that was made since.
func (t *tracker) registered(ref bootRef) bootRef {
	if mac, stranger := hardware.StrangerMAC(ref.uid); stranger {
		if h, known := t.view.HardwareByMAC(mac); known {
			ref.uid = h.Meta.UID
		}
	}
	return ref
}

// phases are the steps of a boot that a Reason shows.
var phases = map[hardware.Reason]hardware.Phase{
	hardware.ReasonProgramSent:   hardware.PhaseProgram,
	hardware.ReasonScriptSent:    hardware.PhaseScript,
	hardware.ReasonSentToDisk:    hardware.PhaseScript,
	hardware.ReasonOwnScript:     hardware.PhaseScript,
	hardware.ReasonKernelSent:    hardware.PhaseKernel,
	hardware.ReasonInitramfsSent: hardware.PhaseKernel,
}

// saw records one thing a client was sent or refused.
func (t *tracker) saw(ctx context.Context, o ipxe.Observation) {
	ref, ok := t.who(o.Client, o.MAC)
	if !ok {
		t.log.Debug("stranger served", "client", o.Client, "reason", o.Reason, "detail", o.Detail)
		return
	}
	mac, stranger := hardware.StrangerMAC(ref.uid)
	h, ok := t.view.HardwareByUID(ref.uid)
	if !ok && !stranger {
		return
	}
	if p, ok := phases[o.Reason]; ok && ref.boot != "" {
		if err := t.engine.Reached(context.WithoutCancel(ctx), ref.uid, ref.boot, p); err != nil {
			t.log.Error("boot not written", "client", o.Client, "reason", hardware.ReasonStoreFailed, "err", err)
		}
	}
	if stranger {
		t.log.Debug("boot of a machine without a record", "mac", mac, "client", o.Client, "reason", o.Reason, "detail", o.Detail)
		t.engine.ObserveStranger(mac, ref.boot, o.Reason, o.Detail, o.Bytes, o.Took)
		return
	}
	t.log.Info("boot", "hardware", h.Meta.Name, "client", o.Client, "reason", o.Reason, "detail", o.Detail, "bytes", o.Bytes, "took", o.Took.Round(time.Millisecond))
	t.engine.Observe(h, ref.boot, o.Reason, o.Detail, o.Bytes, o.Took)
}

// Done implements tftp.Observer.
func (t *tracker) Done(x tftp.Transfer, err error) {
	o := ipxe.Observation{Client: x.Client.Addr(), Detail: x.Name + " by TFTP", Bytes: x.Bytes, Took: x.Duration}
	switch {
	case errors.Is(err, tftp.ErrProbe):
		return // the size was asked for, as firmware does first
	case err != nil:
		o.Reason, o.Detail = hardware.ReasonProgramFailed, x.Name+": "+err.Error()
	default:
		r, ok := ipxe.SentReason(x.Name)
		if !ok {
			return // a machine's commands for GRUB; their own handler tells
		}
		o.Reason = r
	}
	t.saw(context.Background(), o)
}

// Refused implements tftp.Observer.
func (t *tracker) Refused(client netip.AddrPort, name string, err error) {
	var bad *tftp.NameError
	o := ipxe.Observation{Client: client.Addr(), Reason: hardware.ReasonBadName, Detail: hardware.PlainText(name, 128)}
	switch {
	case errors.As(err, &bad):
	case errors.Is(err, fs.ErrNotExist) && ipxe.Tried(name):
		return // shim and GRUB try a dozen names that nobody has
	case errors.Is(err, fs.ErrNotExist):
		o.Reason = hardware.ReasonFileNotFound
	default:
		o.Reason, o.Detail = hardware.ReasonProgramFailed, hardware.PlainText(name+": "+err.Error(), 200)
	}
	t.saw(context.Background(), o)
}
