package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
)

// running is what the daemon says of itself.
type running struct {
	up  bool
	err error // it runs, and not everything could be asked
	// owners have its health port, as dhcp.PortOwners names them.
	owners   []string
	says     []diagnosis
	subnets  []hardware.Subnet
	machines []hardware.Hardware
	leases   []api.Lease
	issues   []api.MachineIssue
}

// askTime bounds what the doctor waits for one answer of the daemon.
const askTime = 5 * time.Second

// daemon asks the daemon over its socket.
func (d *doctor) daemon(ctx context.Context, c *config) *running {
	ctx, cancel := context.WithTimeout(ctx, 2*askTime)
	defer cancel()
	out := &running{}
	cl := client.New(client.Options{Socket: c.Socket})
	defer cl.Close()
	v, err := cl.Version(ctx)
	var away *client.Unreachable
	switch {
	case errors.As(err, &away) && errors.Is(err, fs.ErrPermission):
		out.says = []diagnosis{warn("daemon", "sudo rackstrap doctor", "%s is root's, so the daemon was not asked", c.Socket)}
		return out
	case err != nil:
		out.says = []diagnosis{fail("daemon", "systemctl start rackstrap; journalctl -u rackstrap -n 50", "it does not answer on its socket: %v", err)}
		return out
	}
	out.up = true
	out.owners = dhcp.PortOwners("tcp", portOf(c.Health.Listen))
	out.says = append(out.says, fine("daemon", "version %s answers on %s", v.Version, c.Socket), ready(ctx, c.Health.Listen))
	var e1, e2, e3, e4 error
	out.subnets, e1 = cl.Subnets.List(ctx)
	out.machines, e2 = cl.Hardware.List(ctx)
	out.leases, e3 = cl.Leases(ctx, client.LeaseFilter{})
	out.issues, e4 = cl.Issues(ctx, client.IssueFilter{})
	if out.err = errors.Join(e1, e2, e3, e4); out.err != nil {
		out.says = append(out.says, fail("records", "journalctl -u rackstrap -n 50", "they cannot be read: %v", out.err))
	}
	return out
}

// ready asks whether every part of the daemon serves.
func ready(ctx context.Context, listen string) diagnosis {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.Replace(listen, "0.0.0.0", "127.0.0.1", 1)+"/readyz", nil)
	if err != nil {
		return fail("ready", "", "%v", err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return fail("ready", "journalctl -u rackstrap -n 50", "%v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fail("ready", "journalctl -u rackstrap -n 50", "not every part of the daemon serves yet (%s)", resp.Status)
	}
	return fine("ready", "every part of the daemon serves")
}

func portOf(listen string) uint16 {
	p, _ := listenPort(listen) // validate has read it
	return p
}

// data looks at the data directory. barred: we may not, and it has been said.
func (d *doctor) data(c *config, r *running) (says []diagnosis, barred bool) {
	closed := warn("data", "sudo rackstrap doctor", "%s is root's, so its lock and the boot files in it were not looked at", c.Data)
	st, err := os.Stat(c.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []diagnosis{warn("data", "rackstrap serve", "%s is not there yet; the daemon makes it", c.Data)}, false
	case errors.Is(err, fs.ErrPermission):
		return []diagnosis{closed}, true
	case err != nil:
		return []diagnosis{fail("data", "ls -ld "+c.Data, "%v", err)}, false
	case !st.IsDir():
		return []diagnosis{fail("data", "ls -ld "+c.Data, "%s is no directory", c.Data)}, false
	}
	out := []diagnosis{checkMode(c.Data, st.Mode())}
	var fsys unix.Statfs_t
	if err := unix.Statfs(c.Data, &fsys); err == nil {
		out = append(out, checkRoom(c.Data, fsys.Bavail*uint64(fsys.Bsize)))
	}
	db, key := filepath.Join(c.Data, databaseFile), filepath.Join(c.Data, keyFile)
	if _, err := os.Stat(db); err == nil {
		if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
			out = append(out, fail("key", "put the key file back, or: rackstrap restore FILE --passphrase-file PASS", "%s is missing, and the records in %s are sealed with it", key, db))
		}
	}
	held, err := locked(db)
	if errors.Is(err, fs.ErrPermission) {
		return append(out, closed), true
	}
	return append(out, checkLock(db, held, r)), false
}

// locked reports whether a process has the database.
func locked(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close() // and with it the lock
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK), nil
}

func checkLock(db string, locked bool, r *running) diagnosis {
	switch {
	case locked && !r.up && len(r.says) > 0 && r.says[0].Result == gradeFail:
		return fail("lock", "fuser -v "+db, "a process has %s open and does not answer: a daemon that starts, hangs, or has another configuration", db)
	case locked:
		return fine("lock", "the daemon has %s", db)
	}
	return fine("lock", "nobody has %s open", db)
}

// ports looks who has the daemon's ports.
func (d *doctor) ports(ctx context.Context, c *config, links []nic, r *running) []diagnosis {
	doors := []door{
		{network: "udp", port: portOf(c.TFTP.Listen), listen: c.TFTP.Listen, does: "TFTP", needed: true},
		{network: "tcp", port: portOf(c.HTTP.Listen), listen: c.HTTP.Listen, does: "HTTP", needed: true},
		{network: "tcp", port: portOf(c.Worker.Listen), listen: c.Worker.Listen, does: "workers", needed: true},
		{network: "tcp", port: portOf(c.Health.Listen), listen: c.Health.Listen, does: "health", needed: true},
	}
	if c.DHCP.Enabled {
		proxy := slices.ContainsFunc(r.subnets, func(n hardware.Subnet) bool { return n.Proxy() })
		doors = append([]door{
			{network: "udp", port: dhcp.ServerPort, does: "DHCP", needed: true},
			{network: "udp", port: dhcp.ProxyPort, does: "proxyDHCP", needed: proxy},
		}, doors...)
	}
	if c.HTTPS.Listen != "" {
		doors = append(doors, door{network: "tcp", port: portOf(c.HTTPS.Listen), listen: c.HTTPS.Listen, does: "HTTPS", needed: true})
	}
	var out []diagnosis
	_ = d.in(func() error {
		for _, p := range doors {
			p.owners = dhcp.PortOwners(p.network, p.port)
			p.blocked = len(p.owners) > 0 && !r.up && p.blocks(ctx, links)
			out = append(out, checkDoor(p, r.owners, r.up))
		}
		return nil
	})
	return out
}

// blocks tries whether a stopped daemon could open its port beside those who have it.
func (p *door) blocks(ctx context.Context, links []nic) bool {
	if p.listen == "" {
		return slices.ContainsFunc(links, func(l nic) bool { return l.err == nil && dhcp.InUse(ctx, l.name, p.port) })
	}
	var lc net.ListenConfig
	var c io.Closer
	var err error
	if p.network == "udp" {
		at, _ := listenAddr(p.listen) // validate has read it
		network := "udp4"             // as TFTP does
		if at.Addr().Is6() {
			network = "udp6"
		}
		c, err = lc.ListenPacket(ctx, network, at.String())
	} else {
		c, err = lc.Listen(ctx, p.network, p.listen)
	}
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, unix.EADDRINUSE)
}

// interfaces looks at those of the configuration, or the one that serve would take.
func (d *doctor) interfaces(c *config) (links []nic, says []diagnosis) {
	_ = d.in(func() error {
		names := c.Interfaces
		if len(names) == 0 {
			name, err := onlyInterface()
			if err != nil {
				says = []diagnosis{fail("interfaces", "rackstrap init; then name it in `interfaces`", "%v", err)}
				return nil
			}
			names = []string{name}
		}
		for _, name := range names {
			l := look(name)
			links, says = append(links, l), append(says, checkNIC(l))
		}
		return nil
	})
	return links, says
}

func look(name string) nic {
	l := nic{name: name}
	ifi, err := dhcp.Interface(name)
	if err != nil {
		l.err = err
		return l
	}
	l.up, l.link = ifi.Flags&net.FlagUp != 0, ifi.Flags&net.FlagRunning != 0
	addrs, _ := ifi.Addrs() // none is what is said then
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			l.networks = append(l.networks, p)
		}
	}
	return l
}

// others searches for DHCP servers on all interfaces at once.
func (d *doctor) others(ctx context.Context, c *config, links []nic, r *running) []diagnosis {
	if !c.DHCP.Enabled {
		return []diagnosis{fine("DHCP", "is switched off in the configuration")}
	}
	d.progress("looking for other DHCP servers, about 5 seconds …")
	heard, errs := make([][]dhcp.Rival, len(links)), make([]error, len(links))
	failed := make([][]diagnosis, len(links))
	var wg sync.WaitGroup
	for i, l := range links {
		if l.err != nil || !l.up {
			continue
		}
		wg.Go(func() {
			failed[i] = looked("DHCP on "+l.name, func() []diagnosis {
				errs[i] = dhcp.Search(ctx, l.name, d.in, func(x dhcp.Rival) {
					same := func(o dhcp.Rival) bool { return o.Server == x.Server }
					if !slices.ContainsFunc(heard[i], same) && !isOurs(links, x.Server) {
						heard[i] = append(heard[i], x)
					}
				})
				return nil
			})
		})
	}
	wg.Wait()
	var out []diagnosis
	for i, l := range links {
		switch {
		case l.err != nil || !l.up:
		case failed[i] != nil:
			out = append(out, failed[i]...)
		default:
			out = append(out, checkOthers(l, heard[i], errs[i], r.subnets, r.up && r.err == nil)...)
		}
	}
	return out
}

func isOurs(links []nic, a netip.Addr) bool {
	return slices.ContainsFunc(links, func(l nic) bool {
		return slices.ContainsFunc(l.networks, func(p netip.Prefix) bool { return p.Addr() == a })
	})
}

// probed is the boot program that the doctor fetches as firmware would: every firmware's
// way begins with one, and this is the smallest.
const probed = dhcp.ProgramBIOS

// checkBootFiles judges what is missing for each architecture. barred: it is said already
// that we may not look.
func checkBootFiles(missing func(arch string) error, barred bool) []diagnosis {
	var out []diagnosis
	for _, arch := range []string{"amd64", "arm64"} {
		switch err := missing(arch); {
		case errors.Is(err, fs.ErrPermission) && barred:
		case errors.Is(err, fs.ErrPermission):
			return append(out, warn("boot files", "sudo rackstrap doctor", "not all of them may be read by who asks"))
		case err == nil:
			out = append(out, fine("boot files", "all of %s are there", arch))
		case arch == "amd64":
			out = append(out, fail("boot files", "make assets build install", "%v", err))
		default:
			out = append(out, warn("boot files", "make assets build install", "%v", err))
		}
	}
	return out
}

// fetches fetches a boot program through the listeners.
func (d *doctor) fetches(ctx context.Context, c *config, links []nic, r *running) []diagnosis {
	var out []diagnosis
	sum := ""
	if f, err := ipxe.NewAssets(c.Data).Open(probed); err == nil {
		sum, err = f.SHA256()
		_ = f.Close()
		if err != nil {
			return append(out, fail("boot files", "", "%s: %v", probed, err))
		}
	}
	if sum == "" || !r.up {
		return out
	}
	for _, how := range []struct {
		name, listen string
		fetch        func(context.Context, netip.AddrPort, string) (string, error)
	}{{"HTTP", c.HTTP.Listen, fetchHTTP}, {"TFTP", c.TFTP.Listen, fetchTFTP}} {
		for _, at := range probes(how.listen, told(r.subnets, links)) {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			var got string
			err := d.in(func() (err error) {
				got, err = how.fetch(ctx, at, probed)
				return err
			})
			cancel()
			out = append(out, checkFetched(how.name, at, got, sum, err))
		}
	}
	return out
}

func checkFetched(how string, at netip.AddrPort, got, want string, err error) diagnosis {
	about := how + " self-test"
	switch {
	case err != nil:
		return fail(about, "nft list ruleset; journalctl -u rackstrap -n 50", "%s cannot be fetched from %s: %v (is a firewall between?)", probed, at, err)
	case got != want:
		return fail(about, fmt.Sprintf("rackstrap version; sha256sum the file at %s", at), "%s from %s has sha256 %.12s…, and ours %.12s…: another program, or another version, answers there", probed, at, got, want)
	}
	return fine(about, "%s comes from %s, sha256 %.12s…", probed, at, want)
}

// clock reads the clock and whether something keeps it (adjtimex(2)).
func (d *doctor) clock() diagnosis {
	state, err := unix.Adjtimex(&unix.Timex{})
	return checkClock(time.Now(), state != unix.TIME_ERROR, err == nil)
}
