package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns"

// Namespace is a named network namespace in which commands run and sockets open.
// The zero value is not usable; New and AddVeth make them.
type Namespace struct {
	name string
}

// Name is what `ip netns` calls the namespace.
func (n *Namespace) Name() string { return n.name }

// Command prepares a command that runs inside the namespace. It sees the
// namespace's /sys and an /etc/resolv.conf of its own, so that DHCP client
// scripts cannot change the host's.
func (n *Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.name, name}, args...)...)
}

// Do calls fn on an OS thread that is inside the namespace and returns its
// error. Sockets that fn opens belong to the namespace for as long as they live.
// Goroutines that fn starts run outside it, and so does /sys, which shows the
// host's interfaces (net.Interfaces is right, it asks the kernel by socket).
func (n *Namespace) Do(fn func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	there, err := os.Open(filepath.Join(netnsDir, n.name))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace %s: %w", n.name, err)
	}
	defer func() {
		// A thread that cannot go home stays locked: the runtime destroys it
		// with the goroutine instead of giving it to somebody else.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return fn()
}

// Dial connects from inside the namespace. The address must be a literal: names
// would be looked up outside.
func (n *Namespace) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := literal(addr); err != nil {
		return nil, err
	}
	var conn net.Conn
	err := n.Do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Listen listens inside the namespace. The host part is empty or a literal.
func (n *Namespace) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	if err := literal(addr); err != nil {
		return nil, err
	}
	var ln net.Listener
	err := n.Do(func() (err error) {
		ln, err = new(net.ListenConfig).Listen(ctx, network, addr)
		return err
	})
	return ln, err
}

// ListenPacket opens a packet socket inside the namespace, as Listen does.
func (n *Namespace) ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error) {
	if err := literal(addr); err != nil {
		return nil, err
	}
	var pc net.PacketConn
	err := n.Do(func() (err error) {
		pc, err = new(net.ListenConfig).ListenPacket(ctx, network, addr)
		return err
	})
	return pc, err
}

// HTTPClient returns a client whose connections start inside the namespace.
// URLs name hosts by address.
func (n *Namespace) HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         n.Dial,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
}

func literal(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if host == "" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Errorf("address %q: names are not looked up in a namespace (write the IP address)", addr)
	}
	return nil
}

// makeNamespace adds a namespace with its loopback up and an empty resolv.conf.
func makeNamespace(ctx context.Context, name string) (*Namespace, error) {
	// `ip netns exec` binds this file over the host's for the commands it runs.
	etc := filepath.Join("/etc/netns", name)
	if err := os.MkdirAll(etc, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(etc, "resolv.conf"), nil, 0o644); err != nil {
		return nil, err
	}
	if err := ip(ctx, "netns", "add", name); err != nil {
		return nil, errors.Join(err, os.RemoveAll(etc))
	}
	if err := ip(ctx, "-n", name, "link", "set", "lo", "up"); err != nil {
		return nil, errors.Join(err, removeNamespace(ctx, name))
	}
	return &Namespace{name: name}, nil
}

// removeNamespace ends what runs in the namespace and deletes it. It is not an
// error if it is gone already.
func removeNamespace(ctx context.Context, name string) error {
	if err := os.RemoveAll(filepath.Join("/etc/netns", name)); err != nil {
		return err
	}
	path := filepath.Join(netnsDir, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := endProcesses(ctx, path); err != nil {
		return err
	}
	return ip(ctx, "netns", "del", name)
}
