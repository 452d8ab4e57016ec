package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/dhcp/ndp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/workflow"
)

// dhcpBoots is the engine as DHCP sees it.
type dhcpBoots struct{ *tracker }

var (
	_ dhcp.Boots  = dhcpBoots{}
	_ ndp.Booting = dhcpBoots{}
)

// FirstPacket implements dhcp.Boots.
func (b dhcpBoots) FirstPacket(ctx context.Context, f dhcp.FirstPacket) (hardware.Boot, error) {
	return b.engine.FirstPacket(ctx, workflow.FirstPacket{
		Hardware: f.Hardware, MAC: f.MAC, XID: f.XID, Firmware: f.Firmware, IPXE: f.IPXE,
		Subnet: f.Subnet.Meta.Name, Discovery: f.Subnet.Spec.Discovery, Proxied: f.Subnet.Proxy(),
	})
}

// Current implements dhcp.Boots.
func (b dhcpBoots) Current(uid string, mac hardware.MAC) (hardware.Boot, bool) {
	return b.engine.Current(context.Background(), uid, mac)
}

// Booting implements ndp.Booting: the firmware or iPXE of a machine that we answer is
// on its way to its script.
func (b dhcpBoots) Booting(mac hardware.MAC) bool {
	h, ok := b.view.HardwareByMAC(mac)
	if !ok {
		x, ok := b.engine.Current(context.Background(), hardware.StrangerUID(mac), mac)
		return ok && x.Phase < hardware.PhaseScript
	}
	m, ok := b.view.Machine(h.Meta.UID)
	return ok && m.Boot != nil && !m.Boot.Closed && m.Boot.MAC == mac && m.Boot.Phase < hardware.PhaseScript
}

// Acked implements dhcp.Boots.
func (b dhcpBoots) Acked(ctx context.Context, a dhcp.Acked) error {
	b.acked(a.Client, bootRef{a.Hardware, a.Boot})
	if a.Proxied {
		b.unleased(a.Client)
	}
	return b.engine.Acked(ctx, a.Hardware, a.Boot, a.Client, a.Server, a.Program)
}

// Observe implements dhcp.Boots.
func (b dhcpBoots) Observe(o dhcp.Observation) {
	if mac, stranger := hardware.StrangerMAC(o.Hardware); stranger {
		b.engine.ObserveStranger(mac, o.Boot, o.Reason, o.Detail, 0, 0)
		return
	}
	h, ok := b.view.HardwareByUID(o.Hardware)
	if !ok {
		return
	}
	b.engine.Observe(h, o.Boot, o.Reason, o.Detail, 0, 0)
	asked := o.Reason == hardware.ReasonAcked || o.Reason == hardware.ReasonProxySilent // us, or the other server
	if asked && o.Firmware == hardware.FirmwareNone && h.Status.State == hardware.StateProvisioned {
		// no firmware, and our worker is not booted any more: it is the system itself
		if m, ok := b.view.Machine(o.Hardware); ok && m.Boot != nil {
			ctx, cancel := context.WithTimeout(context.Background(), seenTimeout)
			defer cancel()
			if err := b.engine.OSSeen(ctx, h, m.Boot.ID); err != nil {
				b.log.Warn("that the installed system runs was not noted", "hardware", h.Meta.Name, "err", err)
			}
		}
	}
}

// seenTimeout bounds what DHCP waits for a note that a system runs.
const seenTimeout = time.Second

// httpBoots is the engine as HTTP and GRUB over TFTP see it.
type httpBoots struct {
	*tracker
	images func(digest string) (*os.File, error)
	// common has what is the same for all machines.
	common             ipxe.ScriptInput
	httpPort, grpcPort uint16
}

var _ ipxe.Backend = (*httpBoots)(nil)

// Script implements ipxe.Scripts.
func (b *httpBoots) Script(ctx context.Context, mac hardware.MAC, client netip.Addr) (ipxe.ScriptInput, hardware.Reason) {
	in := b.common
	in.MAC = mac
	uid := hardware.StrangerUID(mac)
	h, ok := b.view.HardwareByMAC(mac)
	if ok {
		uid, in.Machine, in.Arch = h.Meta.UID, h.Meta.Name, h.Arch()
	}
	g, err := b.engine.Script(ctx, uid, client)
	if errors.Is(err, workflow.ErrNotFound) {
		return in, hardware.ReasonUnknownMachine
	}
	if err != nil {
		b.log.Error("boot script not decided", "hardware", in.Machine, "err", err)
		in.Next = hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonStoreFailed}
		return in, hardware.ReasonStoreFailed
	}
	in.Machine, in.Arch, in.Next = g.Hardware.Meta.Name, g.Hardware.Arch(), g.Next
	in.KernelArgs = append(append([]string{}, b.common.KernelArgs...), g.Hardware.Spec.KernelArgs...)
	if own := g.Hardware.Spec.Netboot.Consoles; len(own) > 0 {
		in.Consoles = own
	}
	in.Own = g.Hardware.Spec.Netboot.IPXE
	in.HTTP = netip.AddrPortFrom(g.Boot.Server, b.httpPort)
	if g.Next.Target != hardware.TargetWorker {
		if g.Next.Target == hardware.TargetDisk {
			return in, hardware.ReasonSentToDisk
		}
		return in, g.Next.Reason
	}
	in.Token, in.Firmware = g.Token, g.Boot.Firmware
	if !b.holds(g.Hardware, mac, client) {
		// The boot's address is somebody else's by now.
		in.Token, g.Reason = "", hardware.ReasonScriptNoToken
	}
	in.Worker = netip.AddrPortFrom(g.Boot.Server, b.grpcPort)
	return in, g.Reason
}

// Asks implements ipxe.Scripts.
func (b *httpBoots) Asks(_ context.Context, client netip.Addr) (hardware.MAC, bool) {
	ref, ok := b.who(client, hardware.MAC{})
	if !ok {
		return hardware.MAC{}, false
	}
	if mac, stranger := hardware.StrangerMAC(ref.uid); stranger {
		return mac, true
	}
	m, ok := b.view.Machine(ref.uid)
	if !ok || m.Boot == nil || m.Boot.ID != ref.boot {
		return hardware.MAC{}, false
	}
	return m.Boot.MAC, true
}

// Observe implements ipxe.Scripts.
func (b *httpBoots) Observe(ctx context.Context, o ipxe.Observation) { b.saw(ctx, o) }

// Image implements ipxe.Backend.
func (b *httpBoots) Image(_ context.Context, digest string) (*os.File, error) {
	return b.images(digest)
}
