package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab/l2"
)

const (
	bridge      = "br0"
	runBase     = "/run/rackstrap-lab"
	machinesDir = "machines"
)

// DefaultSubnet is the LAN of a lab that does not ask for another.
var DefaultSubnet = netip.MustParsePrefix("10.77.0.0/24")

var nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// Options describe a lab.
type Options struct {
	Name   string       // part of the namespace's name: [a-z0-9-]
	Subnet netip.Prefix // DefaultSubnet if zero; the bridge gets its first address
	// Dir keeps disks, logs and lab.json. It is made if missing and left when the
	// lab closes. If empty, a temporary directory is used and removed.
	Dir string
	Log *slog.Logger // discarded if nil
}

// Lab is a LAN: a namespace with a bridge. Its methods may be used concurrently.
type Lab struct {
	*Namespace
	subnet netip.Prefix
	dir    string
	runDir string // sockets: their paths must stay under 108 bytes
	temp   bool
	log    *slog.Logger
	dog    *watchdog

	mu       sync.Mutex
	closed   bool
	machines []*Machine
	clients  []*Client
	captures []*Capture
	sw       *l2.Switch // nil until it is needed
}

// New makes the namespace and its bridge. It needs root and iproute2. ctx bounds
// the making only.
func New(ctx context.Context, o Options) (*Lab, error) {
	if !nameRE.MatchString(o.Name) {
		return nil, fmt.Errorf("lab name %q: use up to 31 of a-z, 0-9 and -", o.Name)
	}
	l := &Lab{subnet: o.Subnet, dir: o.Dir, log: o.Log}
	if !l.subnet.IsValid() {
		l.subnet = DefaultSubnet
	}
	l.subnet = l.subnet.Masked()
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	ns := "rs-" + o.Name + "-" + randomHex(3)
	if err := l.makeDirs(ns); err != nil {
		return nil, err
	}
	var err error
	if l.Namespace, err = makeNamespace(ctx, ns); err != nil {
		return nil, errors.Join(err, l.removeDirs())
	}
	tempDir := ""
	if l.temp {
		tempDir = l.dir
	}
	if l.dog, err = startWatchdog(ns, l.runDir, tempDir); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := errors.Join(l.makeBridge(ctx), l.saveState()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) makeDirs(ns string) (err error) {
	if l.dir == "" {
		l.temp = true
		l.dir, err = os.MkdirTemp("", ns+"-")
	} else if l.dir, err = filepath.Abs(l.dir); err == nil {
		err = os.MkdirAll(l.dir, 0o755)
	}
	if err != nil {
		return err
	}
	if s, err := ReadState(l.dir); err == nil {
		return fmt.Errorf("%s: holds lab %s already (lab.Clean takes it down)", l.dir, s.Namespace)
	}
	l.runDir = filepath.Join(runBase, ns)
	return os.MkdirAll(l.runDir, 0o700)
}

func (l *Lab) removeDirs() error {
	err := os.RemoveAll(l.runDir)
	if l.temp {
		return errors.Join(err, os.RemoveAll(l.dir))
	}
	if rerr := os.Remove(filepath.Join(l.dir, stateFile)); !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

func (l *Lab) makeBridge(ctx context.Context) error {
	addr := netip.PrefixFrom(l.Gateway(), l.subnet.Bits()).String()
	for _, args := range [][]string{
		// No spanning tree and no snooping: a port forwards as soon as it is up.
		{"link", "add", bridge, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"},
		{"addr", "add", addr, "dev", bridge},
		{"link", "set", bridge, "up"},
	} {
		if err := ip(ctx, append([]string{"-n", l.name}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// Subnet is the LAN's prefix.
func (l *Lab) Subnet() netip.Prefix { return l.subnet }

// Gateway is the bridge's address, the first of the subnet: where a daemon in
// the lab is reached.
func (l *Lab) Gateway() netip.Addr { return l.subnet.Addr().Next() }

// Bridge is the name of the LAN's interface inside the namespace.
func (l *Lab) Bridge() string { return bridge }

// Dir is the work directory.
func (l *Lab) Dir() string { return l.dir }

// Detach lets the lab go on after this process: the watchdog is sent away, and
// Close does nothing from then on. Clean takes the lab down.
func (l *Lab) Detach() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errors.New("lab is closed")
	case l.sw != nil:
		return errors.New("the lab has a switch, which is in this process")
	}
	l.closed = true
	return l.dog.dismiss()
}

// Close ends the machines and every other process in the lab, and removes what
// the lab made but for the logs and disks in Options.Dir. It may be called
// again, and takes no context: it must work after everything was cancelled.
func (l *Lab) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	machines, clients, captures, sw := l.machines, l.clients, l.captures, l.sw
	l.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	for _, c := range captures {
		err = errors.Join(err, c.Stop())
	}
	for _, m := range machines {
		err = errors.Join(err, m.PowerOff())
	}
	if sw != nil {
		err = errors.Join(err, sw.Close())
	}
	for _, c := range clients {
		err = errors.Join(err, removeNamespace(ctx, c.name))
	}
	err = errors.Join(err, removeNamespace(ctx, l.name), l.removeDirs())
	if l.dog != nil {
		err = errors.Join(err, l.dog.dismiss())
	}
	return err
}

// saveState rewrites lab.json. The caller must not hold l.mu.
func (l *Lab) saveState() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	s := State{
		Name: l.name, Namespace: l.name, Namespaces: []string{l.name},
		Gateway: l.Gateway().String(), RunDir: l.runDir,
	}
	for _, c := range l.clients {
		s.Namespaces = append(s.Namespaces, c.name)
	}
	for _, m := range l.machines {
		s.Machines = append(s.Machines, m.state())
	}
	return writeState(l.dir, s)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, it ends the program instead
	return hex.EncodeToString(b)
}
