package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// advice is what to do about a Reason that ends a boot.
type advice struct {
	fix string
	// do makes the command that shows more; nil is the timeline. detail is the event's.
	do func(s *Snapshot, detail string) string
	// weak: it is often followed by success, so anything else is told first.
	weak bool
}

// endings are the Reasons that keep a boot from getting on.
func endings() map[hardware.Reason]advice {
	record := func(s *Snapshot, _ string) string { return typeGet(s.name()) }
	subnets := func(*Snapshot, string) string { return typeSubnets }
	subnet := func(_ *Snapshot, detail string) string {
		if hardware.ValidName(detail) == nil {
			return typeSubnet(detail)
		}
		return typeSubnets
	}
	leases := func(_ *Snapshot, detail string) string {
		if hardware.ValidName(detail) == nil {
			return "rackstrap lease list --subnet " + detail
		}
		return "rackstrap lease list"
	}
	daemon := func(*Snapshot, string) string { return typeDaemonLog }
	return map[hardware.Reason]advice{
		hardware.ReasonMalformed:      {fix: "look at the packet: tcpdump -vni any udp port 67; update the firmware, or boot from another port"},
		hardware.ReasonNotEthernet:    {fix: "let it boot from an Ethernet port"},
		hardware.ReasonUnknownMachine: {fix: "it boots from a NIC that is not in its record: add that MAC to spec.interfaces", do: func(*Snapshot, string) string { return typeStrangers }},
		hardware.ReasonNoSubnet: {
			fix: "its packets come from a network without a Subnet record: make one whose prefix holds the address named here (behind a relay: the relay's)", do: subnets,
		},
		hardware.ReasonSubnetOff:     {fix: "set spec.mode: reservation in that subnet", do: subnet},
		hardware.ReasonNICOff:        {fix: "remove dhcp: false from that NIC in the record, or boot from another one", do: record},
		hardware.ReasonNoReservation: {fix: "it is plugged into that subnet: add an address of it to spec.interfaces[].addresses, or plug it where its address belongs", do: record},
		hardware.ReasonOtherServer:   {fix: "two DHCP servers answer in its network: switch the one at that address off there, or give its VLAN to one of the two"},
		hardware.ReasonWrongAddress:  {fix: "it was told to ask anew; if that repeats, two records or two servers give it different addresses", weak: true},
		hardware.ReasonNoServerAddress: {
			fix: "give our interface an address in that subnet, or set spec.advertise of the subnet", do: subnets,
		},
		hardware.ReasonTwoAddresses: {fix: "set spec.advertise of the subnet to the one of our addresses that machines are to use", do: subnets},
		hardware.ReasonDeclined:     {fix: "another machine uses its address: find it (arping), or reserve another address", do: record},
		hardware.ReasonPoolEmpty: {
			fix: "make spec.pool.ranges of that subnet larger or its leaseTime shorter, take back leases that nobody needs, or reserve an address for it in spec.interfaces[].addresses", do: leases,
		},
		hardware.ReasonAddressInUse: {
			fix: "somebody uses addresses of the pool without having them from us: find him (arping), or exclude the address (spec.pool.exclude)", weak: true,
			do: func(*Snapshot, string) string { return "rackstrap lease list --state quarantined -o wide" },
		},
		hardware.ReasonAddressLent: {
			fix: "wait until the machine named here renews its lease, after half of the lease time at the latest, or restart that one; taken back, the lease ends at once and its user is not asked", do: leases,
		},
		hardware.ReasonDeclinesIgnored: {fix: "it says of one address after the other that it is in use: look for another machine with its MAC, or for a switch that answers ARP for others", weak: true},
		hardware.ReasonNoLease:         {fix: "it wants an address that it had from elsewhere and soon asks for a new one; if that repeats, its DHCP client is broken", weak: true},
		hardware.ReasonLeaseRevoked:    {fix: "it asks for a new one at its next renewal; restart it if that is too late", weak: true},
		hardware.ReasonRateLimited:     {fix: "something floods the network with DHCP packets: stop it"},
		hardware.ReasonStoreFailed:     {fix: "the appliance cannot write: look at its disk (df -h /var/lib/rackstrap)", do: daemon},
		hardware.ReasonUnknownFirmware: {fix: "choose UEFI PXE over IPv4, or BIOS network boot, in its setup; for the architecture named here put a program of your own into /var/lib/rackstrap/boot and name it in spec.netboot.program", do: record},
		hardware.ReasonProgramLoop: {
			fix: "its iPXE cannot fetch over HTTP: put a newer one into /var/lib/rackstrap/boot (undionly.kpxe or snponly.efi) and restart it",
		},
		hardware.ReasonNoProgram: {
			fix: "Debian has no boot program for that architecture: put one into /var/lib/rackstrap/boot and name it in spec.netboot.program of the record, or boot it another way", do: record,
		},
		hardware.ReasonOwnNeedsIPXE: {fix: "its boot goes through shim and GRUB, which run no iPXE script: remove spec.netboot.ipxe, or name a signed iPXE in spec.netboot.program", do: record},
		hardware.ReasonPoolShare: {
			fix: "machines without a record have used up their share of the pool: register it, or take leases back: rackstrap lease revoke", do: leases,
		},
		hardware.ReasonOtherDHCP: {
			fix: "another DHCP server answers in its network: switch it off there, or set spec.mode: proxy in the subnet and leave the addresses to it", do: subnets,
		},
		hardware.ReasonBootLoop: {
			fix: "find out why its boots come to nothing, then take it off hold", do: func(s *Snapshot, _ string) string { return typeUnhold(s.name()) },
		},
		hardware.ReasonNoBootAssets:  {fix: "put the boot files into /var/lib/rackstrap/boot, or build with `make assets`", do: daemon},
		hardware.ReasonProgramFailed: {fix: "it stopped in the middle of the boot program: look at the link's error counters and MTU, and restart it"},
		hardware.ReasonFileNotFound:  {fix: "it asked for a file that is not in /var/lib/rackstrap/boot, or for an image that was deleted", weak: true},
		hardware.ReasonBadName:       {fix: "correct the file name in its setup or in the other DHCP server", weak: true},
		hardware.ReasonScriptNoToken: {
			fix: "it asks from another address than ours: a second DHCP server gave it one, or a router translates addresses; mend that and restart it",
		},
		hardware.ReasonWorkerTooOld:    {fix: "it boots an initramfs from before an upgrade: replace or remove it in /var/lib/rackstrap/boot"},
		hardware.ReasonTokenUnknown:    {fix: "its script comes from another installation: find out which server it boots from, and restart it"},
		hardware.ReasonTokenExpired:    {fix: "its boot took longer than the token lives: restart it; if that repeats, its downloads are too slow"},
		hardware.ReasonTokenSuperseded: {fix: "a worker of the boot before came late; it restarts by itself", weak: true},
		hardware.ReasonTokenStolen:     {fix: "find the other machine by the address named here, then take this one off hold", do: func(s *Snapshot, _ string) string { return typeUnhold(s.name()) }},
	}
}

// steps are the Reasons that show that a boot gets on.
func steps() []hardware.Reason {
	return []hardware.Reason{
		hardware.ReasonProgramSent, hardware.ReasonScriptSent, hardware.ReasonKernelSent,
		hardware.ReasonInitramfsSent, hardware.ReasonWorkerConnected,
	}
}

// relevant are the events that can say why the machine does not get on: those of its
// boot, and those that belong to none and came after its start.
func (s *Snapshot) relevant() []Event {
	b := s.boot()
	var from time.Time
	switch w := s.active(); {
	case b != nil:
		from = b.Started
	case w != nil:
		from = w.Meta.Created
	case s.Boot != nil:
		b, from = s.Boot, s.Boot.Started
	}
	var out []Event
	for _, e := range s.Events {
		switch {
		case e.Boot == "" && !e.Last.Before(from), b != nil && e.Boot == b.ID, b != nil && e.Boot > b.ID:
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Last.Compare(b.Last) })
	return out
}

// diagnosis is the event that tells best why a boot ended, and what to do.
type diagnosis struct {
	event Event
	advice
}

// diagnose finds the newest event that ends a boot and was not followed by a step.
func (s *Snapshot) diagnose() (diagnosis, bool) { return ending(s.relevant()) }

// ending is diagnose for events in the order in which they were seen last.
func ending(events []Event) (diagnosis, bool) {
	var found diagnosis
	ok := false
	ends := endings()
	for _, e := range events {
		if slices.Contains(steps(), e.Reason) {
			ok = false
			continue
		}
		a, bad := ends[e.Reason]
		if !bad || (ok && a.weak && !found.weak) {
			continue
		}
		found, ok = diagnosis{e, a}, true
	}
	return found, ok
}

// EndedWithout says why a boot ended without a worker, from its events, and what to do;
// nothing for one that had a worker or wanted none. over says that the boot is over:
// then it is told too how far a boot came of which nothing bad is known.
func EndedWithout(events []Event, over bool) (why, fix string) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return a.Last.Compare(b.Last) })
	var last hardware.Reason
	var began string
	for _, e := range events {
		switch e.Reason {
		case hardware.ReasonBootStarted:
			began = e.Detail
		case hardware.ReasonWorkerConnected, hardware.ReasonSentToDisk:
			return "", ""
		case hardware.ReasonBootProgram, hardware.ReasonBootScript, hardware.ReasonProgramSent, hardware.ReasonScriptSent,
			hardware.ReasonKernelSent, hardware.ReasonInitramfsSent:
			last = e.Reason
		}
	}
	if d, ok := ending(events); ok && (!d.weak || last != "") {
		return d.event.Text(), d.fix
	}
	if !over || last == "" {
		return "", ""
	}
	phase := map[hardware.Reason]hardware.Phase{
		hardware.ReasonBootProgram: hardware.PhaseAddress, hardware.ReasonProgramSent: hardware.PhaseProgram, hardware.ReasonBootScript: hardware.PhaseProgram,
		hardware.ReasonScriptSent: hardware.PhaseScript, hardware.ReasonKernelSent: hardware.PhaseKernel, hardware.ReasonInitramfsSent: hardware.PhaseKernel,
	}[last]
	why = "the last that was seen of it: " + last.Sentence()
	if phase == hardware.PhaseProgram && strings.HasPrefix(began, "uefi-") {
		if strings.Contains(began, throughGRUB) {
			return why, notStarted(hardware.ChainGRUB, "")
		}
		return why, notStarted(hardware.ChainIPXE, hardware.ChainGRUB)
	}
	return why, phaseAdvice(phase)
}

// throughGRUB is how the start of a boot says that it takes that chain.
const throughGRUB = "; through shim and GRUB: "

// bootAdvice is what to look at when a boot does not get on and nothing else is known.
func (s *Snapshot) bootAdvice(b *hardware.Boot) string {
	uefi := b.Firmware == hardware.FirmwareUEFI || b.Firmware == hardware.FirmwareHTTP ||
		b.Firmware == hardware.FirmwareUEFIARM || b.Firmware == hardware.FirmwareHTTPARM
	switch lent := s.lent(); {
	case b.Phase == hardware.PhaseDHCP && lent != nil && lent.Proxy():
		return fmt.Sprintf("subnet %s leaves addresses to another DHCP server, and none came from it: look whether that server runs and has an address left", lent.Meta.Name)
	case b.Phase == hardware.PhaseProgram && uefi && b.Chain != "":
		after, _ := PickChain(s.hw(), b.Firmware, b, lent != nil && lent.Proxy())
		return notStarted(b.Chain, after)
	}
	return phaseAdvice(b.Phase)
}

// notStarted is what to do about a UEFI that took the boot program of a chain and of
// which nothing more was heard; after is the chain of its next boot, where it is known.
func notStarted(c, after hardware.Chain) string {
	switch {
	case c == hardware.ChainIPXE && after == hardware.ChainGRUB:
		return "Secure Boot probably refused iPXE: restart it, its next boot takes shim and GRUB by itself (spec.netboot.secureBoot: on says so for good)"
	case c == hardware.ChainIPXE:
		return "iPXE does not run, and the record says secureBoot: off: set it to auto if that may be wrong; else boot from another port"
	case after == hardware.ChainIPXE:
		return "shim or GRUB does not run: restart it, its next boot takes iPXE by itself; its console says why"
	}
	return "shim or GRUB does not run: its console says why; under Secure Boot the firmware must trust Microsoft's UEFI CA, which signed shim"
}

// SwitchesOn reports whether the event is a machine's being switched on, or a person's
// being asked to.
func SwitchesOn(e *Event) bool {
	switch e.Reason {
	case hardware.ReasonPowerDone:
		return strings.HasPrefix(e.Detail, "on") || strings.HasPrefix(e.Detail, "cycle")
	case hardware.ReasonPowerByHand:
		return !strings.Contains(e.Detail, " off") || strings.Contains(e.Detail, " on,")
	}
	return false
}

// command shows more of what was diagnosed.
func (d diagnosis) command(s *Snapshot) string {
	if d.do == nil {
		return typeTimeline(s.name())
	}
	return d.do(s, d.event.Detail)
}

// phaseAdvice is what to look at when a boot does not get beyond a phase and nothing
// else is known.
func phaseAdvice(p hardware.Phase) string {
	switch p {
	case hardware.PhaseDHCP:
		return "our offer does not reach it, or it takes another server's: look at spanning tree (portfast) and for a second DHCP server"
	case hardware.PhaseAddress:
		return "it does not load the boot program: look at the firewall (UDP 69, TCP 7080)"
	case hardware.PhaseProgram:
		return "the boot program does not run: look at Secure Boot and at the network port's driver, or boot from another port"
	case hardware.PhaseScript:
		return "it does not load the kernel: its console says why"
	case hardware.PhaseKernel:
		return "the worker does not reach us: look at its console, its memory (512 MB are needed) and the firewall (TCP 42113)"
	}
	return "look at its console and at the firewall (TCP 42113)"
}
