package main

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// What is enough room in the data directory: a database and its copy, and an image.
const (
	roomFail = 256 << 20
	roomWarn = 4 << 30
)

// checkRoom judges the free bytes of the data directory.
func checkRoom(dir string, free uint64) diagnosis {
	text := fmt.Sprintf("%s has %.1f GB free", dir, float64(free)/1e9)
	switch {
	case free < roomFail:
		return fail("room", "rackstrap image list; df -h "+dir, "%s: leases and records cannot be written soon", text)
	case free < roomWarn:
		return warn("room", "rackstrap image list; df -h "+dir, "%s, too little for most images", text)
	}
	return fine("room", "%s", text)
}

// checkMode judges who can read the data directory.
func checkMode(dir string, mode fs.FileMode) diagnosis {
	if mode.Perm()&0o077 != 0 {
		return warn("data", "chmod 700 "+dir, "%s can be read by others (%#o): keys and records are in it", dir, mode.Perm())
	}
	return fine("data", "%s is there, and ours only", dir)
}

// door is a port that the daemon needs.
type door struct {
	network string
	port    uint16
	// listen is where the configuration has it; empty: on each of our interfaces.
	listen string
	does   string
	needed bool
	// owners hold it, as dhcp.PortOwners names them.
	owners []string
	// blocked: the daemon could not open it beside them.
	blocked bool
}

// checkDoor judges who has a port. daemon is the owner of the running one's health port.
func checkDoor(p door, daemon []string, up bool) diagnosis {
	about, find := fmt.Sprintf("%s %d", p.network, p.port), fmt.Sprintf("ss -lnp sport = :%d", p.port)
	who := strings.Join(p.owners, " and ")
	has := func(o string) bool { return slices.Contains(p.owners, o) }
	switch {
	case len(p.owners) == 0 && up && p.needed:
		return fail(about, "journalctl -u rackstrap -n 50", "the daemon runs and nobody listens for %s", p.does)
	case len(p.owners) == 0:
		return fine(about, "is free, for %s", p.does)
	case up && slices.ContainsFunc(daemon, func(o string) bool { return o != "" && has(o) }):
		return fine(about, "the daemon has it, for %s", p.does)
	case up && has("") && slices.Contains(daemon, ""):
		return fine(about, "is in use, for %s", p.does)
	case has(""):
		return warn(about, "sudo rackstrap doctor; "+find, "a process that /proc does not show has the port of %s: run as root to see who", p.does)
	case !p.needed:
		return warn(about, find, "%s has the port of %s", who, p.does)
	case !up && !p.blocked:
		return warn(about, find, "%s has the port of %s, at another address or interface than the daemon takes", who, p.does)
	}
	return fail(about, "stop it: "+find, "%s has the port of %s", who, p.does)
}

// nic is one interface of ours.
type nic struct {
	name     string
	err      error // it is not there
	up, link bool
	networks []netip.Prefix
}

func checkNIC(l nic) diagnosis {
	about := "interface " + l.name
	switch {
	case l.err != nil:
		return fail(about, "ip -br address", "%v", l.err)
	case !l.up:
		return fail(about, "ip link set "+l.name+" up", "is down")
	case len(l.networks) == 0:
		return fail(about, "ip address add ADDRESS/PREFIX dev "+l.name, "has no IPv4 address, so DHCP has none to answer from")
	case !l.link:
		return warn(about, "ip -s link show "+l.name, "has no link: cable, switch port, or no machine is on")
	}
	return fine(about, "is up, with %s", joinNetworks(l.networks))
}

func joinNetworks(n []netip.Prefix) string {
	out := make([]string, len(n))
	for i, p := range n {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}

// checkSubnets says of each Subnet whether machines there find us.
func checkSubnets(r *running, links []nic) []diagnosis {
	const none, do = "there is no Subnet record, so DHCP answers nobody", "rackstrap apply -f rack.yaml"
	switch {
	case !r.up, r.err != nil && len(r.subnets) == 0:
		return nil
	case len(r.subnets) == 0 && len(r.machines) == 0: // a new appliance
		return []diagnosis{warn("subnets", do, "%s yet", none)}
	case len(r.subnets) == 0:
		return []diagnosis{fail("subnets", do, "%s", none)}
	}
	var out []diagnosis
	for i := range r.subnets {
		out = append(out, checkSubnet(&r.subnets[i], links))
	}
	return out
}

func checkSubnet(n *hardware.Subnet, links []nic) diagnosis {
	about := "subnet " + n.Meta.Name
	if n.Spec.Mode == hardware.ModeOff {
		return fine(about, "is off")
	}
	var ours []string
	advertised := false
	for _, l := range links {
		for _, p := range l.networks {
			if n.Spec.Prefix.Contains(p.Addr()) {
				ours = append(ours, p.Addr().String()+" on "+l.name)
			}
			advertised = advertised || p.Addr() == n.Spec.Advertise
		}
	}
	set := fmt.Sprintf("rackstrap subnet patch %s -p 'spec: {advertise: ADDRESS}'", n.Meta.Name)
	switch {
	case n.Spec.Advertise.IsValid() && !advertised:
		return warn(about, set, "advertises %s, which none of our interfaces has: right only if it is translated to us", n.Spec.Advertise)
	case n.Spec.Advertise.IsValid():
		return fine(about, "%s, machines are told %s", n.Spec.Prefix, n.Spec.Advertise)
	case len(ours) > 1:
		return fail(about, set, "%s are all in %s, and we do not guess which one machines are told", strings.Join(ours, " and "), n.Spec.Prefix)
	case len(ours) == 0:
		return fine(about, "no interface of ours is in %s: machines there reach us through a relay only", n.Spec.Prefix)
	}
	return fine(about, "%s, machines are told %s", n.Spec.Prefix, ours[0])
}

// told are our addresses that machines are told to fetch from; all of ours where no Subnet
// says which.
func told(subnets []hardware.Subnet, links []nic) []netip.Addr {
	var all, out []netip.Addr
	for _, l := range links {
		for _, p := range l.networks {
			all = append(all, p.Addr())
		}
	}
	for _, a := range all {
		if slices.ContainsFunc(subnets, func(n hardware.Subnet) bool {
			if n.Spec.Mode == hardware.ModeOff || n.Spec.Advertise.IsValid() {
				return n.Spec.Mode != hardware.ModeOff && n.Spec.Advertise == a
			}
			return n.Spec.Prefix.Contains(a)
		}) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// probes are where a listener of the configuration is to be reached.
func probes(listen string, told []netip.Addr) []netip.AddrPort {
	at, _ := listenAddr(listen) // validate has read it
	if !at.Addr().IsUnspecified() {
		return []netip.AddrPort{at}
	}
	var out []netip.AddrPort
	for _, a := range told {
		out = append(out, netip.AddrPortFrom(a, at.Port()))
	}
	return out
}

// checkOthers says what a search on an interface came to. known: the Subnets are known.
func checkOthers(l nic, heard []dhcp.Rival, err error, subnets []hardware.Subnet, known bool) []diagnosis {
	about := "DHCP on " + l.name
	if err != nil {
		return []diagnosis{warn(about, "sudo rackstrap doctor", "other servers were not searched for: %v", err)}
	}
	var all []*hardware.Subnet
	for i := range subnets {
		all = append(all, &subnets[i])
	}
	var out []diagnosis
	for _, f := range dhcp.Findings(l.name, l.networks, all, heard) {
		if !f.Rival.Server.IsValid() {
			out = append(out, fail(about, "look at the other server, or: rackstrap subnet edit "+f.Subnet, "nobody answers, and subnet %s of mode proxy needs another DHCP server", f.Subnet))
			continue
		}
		out = append(out, warn(about, "switch it off, or: rackstrap subnet edit "+f.Subnet+" (mode: proxy)", "another server answers in subnet %s: %s; machines without a record get no address from us meanwhile", f.Subnet, f.Rival))
	}
	switch {
	case len(out) > 0:
		return out
	case len(heard) == 0:
		return []diagnosis{fine(about, "no other server answers")}
	case known:
		return []diagnosis{fine(about, "another server answers, as it should: %s", heard[0])}
	}
	for _, r := range heard {
		out = append(out, warn(about, "switch it off, or use mode proxy in the Subnet", "another server answers: %s", r))
	}
	return out
}

// checkClock judges the clock: certificates and tokens go by it.
func checkClock(now time.Time, synchronised, known bool) diagnosis {
	const about, do = "clock", "timedatectl set-ntp true"
	switch {
	case now.Year() < 2026:
		return fail(about, do, "it is %s here, which cannot be: certificates and tokens go by the clock", now.UTC().Format(time.RFC3339))
	case known && !synchronised:
		return warn(about, do, "%s, and nothing keeps it right", now.UTC().Format(time.RFC3339))
	}
	return fine(about, "%s", now.UTC().Format(time.RFC3339))
}

// poolWarn is how full a pool may be, in percent.
const poolWarn = 90

// checkRecords says what the records show that a person should know.
func checkRecords(d *running) []diagnosis {
	if !d.up || d.err != nil {
		return nil
	}
	var out []diagnosis
	for i := range d.subnets {
		n := &d.subnets[i]
		if n.Spec.Mode != hardware.ModePool || n.Spec.Pool == nil {
			continue
		}
		used := 0
		for _, l := range d.leases {
			if l.Subnet == n.Meta.Name && !l.Reservation && l.State != hardware.LeaseExpired && l.State != hardware.LeaseReleased {
				used++
			}
		}
		about, text, do := "pool "+n.Meta.Name, fmt.Sprintf("%d of %d addresses are taken", used, n.Spec.Pool.Size()), "rackstrap lease list; rackstrap subnet edit "+n.Meta.Name
		switch size := n.Spec.Pool.Size(); {
		case used >= size:
			out = append(out, fail(about, do, "%s: nobody else gets one", text))
		case used*100 >= size*poolWarn:
			out = append(out, warn(about, do, "%s", text))
		default:
			out = append(out, fine(about, "%s", text))
		}
	}
	if pending := slices.DeleteFunc(slices.Clone(d.machines), func(h hardware.Hardware) bool { return h.Status.State != hardware.StatePending }); len(pending) > 0 {
		out = append(out, warn("machines", "rackstrap hardware list --state pending; rackstrap accept "+pending[0].Meta.Name, "%d of %d wait to be accepted", len(pending), len(d.machines)))
	} else {
		out = append(out, fine("machines", "%d, none waits to be accepted", len(d.machines)))
	}
	errors := len(slices.DeleteFunc(slices.Clone(d.issues), func(i api.MachineIssue) bool { return i.Severity != hardware.SeverityError }))
	if len(d.issues) > 0 {
		return append(out, warn("issues", "rackstrap issue list", "%d are open, %d of them errors", len(d.issues), errors))
	}
	return append(out, fine("issues", "none is open"))
}
