package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/deploy/lab/l2"
)

// uplink is the interface that joins the lab's switch to the bridge.
const uplink = "uplink0"

// Switch is the switch that machines with a Port are plugged into. It is made when
// the first one is added, or asked for; it ends with the lab.
func (l *Lab) Switch(ctx context.Context) (*l2.Switch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errors.New("lab is closed")
	case l.sw != nil:
		return l.sw, nil
	}
	sw := l2.New()
	if err := l.plugUplink(ctx, sw); err != nil {
		return nil, errors.Join(fmt.Errorf("the lab's switch: %w", err), sw.Close())
	}
	l.sw = sw
	return sw, nil
}

func (l *Lab) plugUplink(ctx context.Context, sw *l2.Switch) error {
	port, err := sw.AddPort(l2.Port{Name: uplink})
	if err != nil {
		return err
	}
	var tap l2.Frames
	if err := l.Do(func() (err error) { tap, err = l2.OpenTAP(uplink); return err }); err != nil {
		return err
	}
	if err := sw.Plug(port, tap); err != nil {
		return errors.Join(err, tap.Close())
	}
	return ip(ctx, "-n", l.name, "link", "set", uplink, "master", bridge, "up")
}

// plug is the machine's place at the lab's switch.
type plug struct {
	sw   *l2.Switch
	port int
}

// addPort gives the machine its place: a port of the switch where it asked for one or
// its firmware needs it, else a TAP on the bridge.
func (m *Machine) addPort(ctx context.Context, tap string) error {
	p := platforms[m.spec.Firmware]
	if m.spec.Port == nil && !p.plainPXE {
		for _, args := range [][]string{
			{"tuntap", "add", tap, "mode", "tap"},
			{"link", "set", tap, "master", bridge, "up"},
		} {
			if err := ip(ctx, append([]string{"-n", m.lab.name}, args...)...); err != nil {
				return err
			}
		}
		m.tap = tap
		return nil
	}
	var port l2.Port
	if m.spec.Port != nil {
		port = *m.spec.Port
	}
	port.Name, port.PlainPXE = m.spec.Name, p.plainPXE
	sw, err := m.lab.Switch(ctx)
	if err != nil {
		return err
	}
	n, err := sw.AddPort(port)
	m.plug = &plug{sw, n}
	return err
}

// connect plugs the machine in and returns QEMU's end of the cable; nil for a TAP.
func (m *Machine) connect() (*os.File, error) {
	if m.plug == nil {
		return nil, nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs, ours := os.NewFile(uintptr(fds[0]), "net"), os.NewFile(uintptr(fds[1]), "port")
	conn, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	if err := m.plug.sw.Plug(m.plug.port, conn); err != nil {
		return nil, errors.Join(err, conn.Close(), theirs.Close())
	}
	return theirs, nil
}

// flapAtReset takes the link down and up at each reset until the machine goes off.
func (m *Machine) flapAtReset(q *qmpConn) {
	for n := 1; ; n++ {
		if _, err := q.wait(context.Background(), "RESET", n); err != nil {
			return
		}
		if err := m.plug.sw.Flap(m.plug.port); err != nil {
			return
		}
	}
}

// LostFrames counts what the machine's cable lost since it was plugged in. The machine
// must be at a switch.
func (m *Machine) LostFrames() (int, error) {
	if m.plug == nil {
		return 0, fmt.Errorf("machine %s: is not at a switch (give it a Port)", m.spec.Name)
	}
	return m.plug.sw.Lost(m.plug.port)
}

// FlapLink takes the machine's link down and up for a moment, as a driver does that
// takes the card over. The machine must be at a switch.
func (m *Machine) FlapLink() error {
	if m.plug == nil {
		return fmt.Errorf("machine %s: is not at a switch (give it a Port)", m.spec.Name)
	}
	return m.plug.sw.Flap(m.plug.port)
}
