package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Peer is somebody else's daemon in the lab. It ends with the lab at the latest.
type Peer struct {
	Log  string // path of what it says
	cmd  *exec.Cmd
	done chan struct{}
}

// startPeer runs cmd and returns when it has said ready.
func (l *Lab) startPeer(ctx context.Context, name, ready string, cmd *exec.Cmd) (*Peer, error) {
	p := &Peer{Log: filepath.Join(l.dir, name+".log"), cmd: cmd, done: make(chan struct{})}
	log, err := os.Create(p.Log)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return nil, errors.Join(err, r.Close(), log.Close())
	}
	said := make(chan struct{})
	go func() {
		defer close(p.done)
		defer log.Close()
		once := said
		for lines := bufio.NewScanner(r); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if once != nil && strings.Contains(lines.Text(), ready) {
				close(once)
				once = nil
			}
		}
		_ = r.Close()
		_ = cmd.Wait() // it is killed, or its log says why it ended
	}()
	select {
	case <-said:
		return p, nil
	case <-p.done:
		b, _ := os.ReadFile(p.Log)
		return nil, fmt.Errorf("%s ended: %s", name, tail(string(b), 10))
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("%s never said %q: %w", name, ready, ctx.Err()), p.Stop())
	}
}

// Stop kills the daemon and waits for its end.
func (p *Peer) Stop() error {
	err := p.cmd.Process.Kill()
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Dnsmasq runs dnsmasq as the LAN's DHCP server, on a host of its own that has the
// address at. It lends the addresses from first to last and knows nothing of netbooting,
// unless args teach it. It needs dnsmasq.
func (l *Lab) Dnsmasq(ctx context.Context, at, first, last netip.Addr, args ...string) (*Peer, error) {
	c, err := l.AddVeth(ctx, "dnsmasq", nil)
	if err != nil {
		return nil, err
	}
	if err := c.SetAddr(ctx, netip.PrefixFrom(at, l.subnet.Bits())); err != nil {
		return nil, err
	}
	leases := filepath.Join(l.dir, "dnsmasq.leases")
	cmd := c.Command(context.WithoutCancel(ctx), "dnsmasq", append([]string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--log-facility=-", "--log-dhcp", "--user=root", "--pid-file=", "--port=0",
		"--interface=" + ClientIface, "--dhcp-leasefile=" + leases, "--dhcp-authoritative",
		fmt.Sprintf("--dhcp-range=%s,%s,1h", first, last), "--dhcp-option=option:router," + l.Gateway().String(),
	}, args...)...)
	return l.startPeer(ctx, "dnsmasq", "DHCP, IP range", cmd)
}

// Relay runs the ISC relay in the lab's namespace, from the LAN to the server, which
// AddRouted has made.
func (l *Lab) Relay(ctx context.Context, server *Routed) (*Peer, error) {
	root, err := Unpacked(ctx, "isc-dhcp-relay")
	if err != nil {
		return nil, err
	}
	cmd := l.Command(context.WithoutCancel(ctx), filepath.Join(root, "usr/sbin/dhcrelay"),
		"-4", "-d", "--no-pid", "-a", "-id", bridge, "-iu", server.Upstream, server.Addr.String())
	return l.startPeer(ctx, "dhcrelay", "Sending on   Socket/fallback", cmd)
}
