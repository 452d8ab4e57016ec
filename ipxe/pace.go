package ipxe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	// A turn ends after turnTime where somebody waits, and goes on from the end of the
	// line: machines behind a thin line, all of which are slow, must not keep the others
	// waiting for as long as they load.
	turnTime = 15 * time.Second
	// perClient is how many turns one address has at most. A machine needs one; many
	// requests must not be a way to get all of them.
	perClient = 2
	// Who waits is sent trickle bytes, and again every trickleEvery: clients that hear
	// nothing give up, and iPXE asked to come back (503) would lose its place.
	trickle      = 1024
	trickleEvery = 2 * time.Second
)

// gate hands out turns in the order in which they were asked for, at most perClient to
// one client at a time.
type gate struct {
	mu    sync.Mutex
	free  int
	queue []*turn
	held  map[netip.Addr]int // turns by client; without those that have none
}

// turn is one download's place in a gate.
type turn struct {
	gate   *gate
	client netip.Addr
	mu     *sync.Mutex // the gate's
	// ready is closed when the turn has come; one that was taken back has another one.
	// Guarded by mu.
	ready chan struct{}
	has   bool      // guarded by mu
	since time.Time // of having it; guarded by mu
}

// join asks for a turn for a client; leave must be called.
func (g *gate) join(client netip.Addr) *turn {
	t := &turn{gate: g, client: client, mu: &g.mu}
	g.mu.Lock()
	defer g.mu.Unlock()
	t.ask()
	return t
}

// ask takes a free turn or lines up. The caller holds mu.
func (t *turn) ask() {
	t.ready = make(chan struct{})
	t.gate.queue = append(t.gate.queue, t)
	t.gate.next()
}

// next gives a free turn to the first in line who may have one more. The caller holds mu.
func (g *gate) next() {
	i := slices.IndexFunc(g.queue, func(t *turn) bool { return g.held[t.client] < perClient })
	if g.free == 0 || i < 0 {
		return
	}
	t := g.queue[i]
	g.queue = slices.Delete(g.queue, i, i+1)
	if g.held == nil {
		g.held = map[netip.Addr]int{}
	}
	g.free--
	g.held[t.client]++
	t.has, t.since = true, time.Now()
	close(t.ready)
}

// give gives the turn back, to the first who may have it. The caller holds mu.
func (t *turn) give() {
	g := t.gate
	t.has = false
	g.free++
	if g.held[t.client]--; g.held[t.client] == 0 {
		delete(g.held, t.client)
	}
	g.next()
}

// wanted reports whether somebody in line could have this turn. The caller holds mu.
func (t *turn) wanted() bool {
	return slices.ContainsFunc(t.gate.queue, func(w *turn) bool {
		return w.client == t.client || t.gate.held[w.client] < perClient
	})
}

// come returns what is closed when it is this one's turn. Who has had its turn for
// turnTime, or lost it, lines up behind the others.
func (t *turn) come() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has && time.Since(t.since) >= turnTime && t.wanted() {
		t.give()
	}
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
		t.give()
	}
}

// leave gives the turn, or the place in the line, back.
func (t *turn) leave() {
	t.lapse()
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.gate.queue, t); i >= 0 {
		t.gate.queue = slices.Delete(t.gate.queue, i, i+1)
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
