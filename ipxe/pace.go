package ipxe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Pacing bounds what boot files take of the network. Images, which workers fetch, are
// not paced.
type Pacing struct {
	// Rate is the most that the kernel sends to one iPXE, in bytes a second; 0 is no
	// bound. iPXE has few receive buffers, and some of its drivers for 10 and 25 Gb/s
	// cards hang for ever when a large file overruns them (iPXE issues 1023 and 1545).
	Rate int64
	// Turns is how many machines load large boot files at full speed at once; the others
	// are sent a trickle until it is their turn. DefaultTurns where 0.
	Turns int
}

const (
	// DefaultRate is what 1 Gb/s Ethernet carries at most, where no iPXE is known to hang.
	DefaultRate  = 100_000_000
	DefaultTurns = 32
	// turnFrom is the size from which a file needs a turn: kernel and initramfs do, boot
	// programs and scripts are gone at once.
	turnFrom = 2 << 20
	// Who has a turn must take turnChunk bytes within turnPatience, or the next one gets
	// it: machines that are switched off must not keep the others waiting.
	turnChunk    = 256 << 10
	turnPatience = 5 * time.Second
	// Who waits is sent trickle bytes, and again every trickleEvery: clients that hear
	// nothing give up, and iPXE asked to come back (503) would lose its place.
	trickle      = 1024
	trickleEvery = 2 * time.Second
)

// gate hands out turns in the order in which they were asked for.
type gate struct {
	mu    sync.Mutex
	free  int
	queue []*turn
}

// turn is one download's place in a gate.
type turn struct {
	gate *gate
	mu   *sync.Mutex // the gate's
	// ready is closed when the turn has come; a lapsed turn has another one. Guarded by mu.
	ready chan struct{}
	has   bool // guarded by mu
}

// join asks for a turn; leave must be called.
func (g *gate) join() *turn {
	t := &turn{gate: g, mu: &g.mu}
	g.mu.Lock()
	defer g.mu.Unlock()
	t.ask()
	return t
}

// ask takes a free turn or lines up. The caller holds mu.
func (t *turn) ask() {
	t.ready = make(chan struct{})
	if t.gate.free > 0 {
		t.gate.free--
		t.has = true
		close(t.ready)
		return
	}
	t.gate.queue = append(t.gate.queue, t)
}

// next gives the turn of one that leaves to the first in line. The caller holds mu.
func (g *gate) next() {
	if len(g.queue) == 0 {
		g.free++
		return
	}
	t := g.queue[0]
	g.queue = g.queue[1:]
	t.has = true
	close(t.ready)
}

// come returns what is closed when it is this one's turn. A turn that lapsed is asked
// for again, behind the others.
func (t *turn) come() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.has && isClosed(t.ready) {
		t.ask()
	}
	return t.ready
}

// lapse takes a turn from one that does not use it.
func (t *turn) lapse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has {
		t.has = false
		t.gate.next()
	}
}

// leave gives the turn, or the place in the line, back.
func (t *turn) leave() {
	t.lapse()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.gate.queue {
		if w == t {
			t.gate.queue = append(t.gate.queue[:i:i], t.gate.queue[i+1:]...)
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// share is how many bytes may be sent now; it waits where it is not the download's turn.
// first says that nothing was sent yet, which does not wait.
func (t *turn) share(ctx context.Context, first bool) int64 {
	if isClosed(t.come()) {
		return turnChunk
	}
	if first {
		return trickle
	}
	wait := time.NewTimer(trickleEvery)
	defer wait.Stop()
	select {
	case <-t.come():
		return turnChunk
	case <-wait.C:
	case <-ctx.Done(): // the write that follows fails
	}
	return trickle
}

// connKey finds the connection of a request in its context; see Server.
type connKey struct{}

// pacedConn is a connection and whether the kernel holds it back.
type pacedConn struct {
	syscall.Conn
	bound bool
}

// withConn remembers the connection for setRate.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if raw, ok := c.(syscall.Conn); ok {
		return context.WithValue(ctx, connKey{}, &pacedConn{Conn: raw})
	}
	return ctx
}

// isIPXE reports whether iPXE asks, as it calls itself (net/tcp/httpcore.c of iPXE).
func isIPXE(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), "iPXE/") }

// setRate lets the kernel space out what the answer to r sends, where r is from iPXE:
// it does so evenly, frame by frame, and what sends the file does not notice (tcp(7)
// knows nothing of it; SO_MAX_PACING_RATE is in include/net/sock.h of Linux).
func setRate(r *http.Request, rate int64) error {
	c, ok := r.Context().Value(connKey{}).(*pacedConn)
	if !ok {
		return nil // a test without a connection
	}
	value := -1 // as fast as it goes
	if rate > 0 && isIPXE(r) {
		value = int(min(rate, 1<<31-1))
	}
	if !c.bound && value == -1 {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := raw.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, value)
	}); err != nil {
		return err
	}
	if serr != nil {
		return fmt.Errorf("SO_MAX_PACING_RATE: %w", serr)
	}
	c.bound = value != -1
	return nil
}
