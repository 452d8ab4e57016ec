package ipxe

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

const kernelSize = 3 << 20

// rackHandler serves a kernel of kernelSize, to so many machines at a time.
func rackHandler(t *testing.T, turns int) (http.Handler, *fakeBackend) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "boot/vmlinuz-amd64", strings.Repeat("k", kernelSize))
	b := newFakeBackend(t, "")
	return NewHandler(newAssets(builtin(), dir), b, Pacing{Turns: turns}, quiet()), b
}

// pipeWriter is a ResponseWriter that sends the body alone.
type pipeWriter struct {
	net.Conn
	header http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) WriteHeader(int)     {}
func (w *pipeWriter) Flush()              {}

// machine is one that loads the kernel, and what it took so far.
type machine struct {
	took atomic.Int64
	done chan struct{} // closed when there is no more to take
}

// boot starts a download inside a synctest bubble; read takes the body.
func boot(t *testing.T, h http.Handler, from string, read func(io.Reader)) *machine {
	ours, theirs := net.Pipe()
	m := &machine{done: make(chan struct{})}
	go func() {
		defer ours.Close()
		req := httptest.NewRequest(http.MethodGet, "/boot/vmlinuz-amd64", nil).WithContext(t.Context())
		req.RemoteAddr = from + ":9"
		h.ServeHTTP(&pipeWriter{Conn: ours, header: http.Header{}}, req)
	}()
	go func() {
		defer close(m.done)
		read(io.TeeReader(theirs, counter{&m.took}))
	}()
	synctest.Wait()
	return m
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

func all(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// slowly takes a chunk, and the next one just before its turn would lapse.
func slowly(r io.Reader) {
	for {
		if _, err := io.CopyN(io.Discard, r, turnChunk); err != nil {
			return
		}
		time.Sleep(turnPatience - time.Second)
	}
}

// Who waits hears a trickle for as long as it takes, then gets all of it, and the
// timeline hears of it once.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, b := rackHandler(t, 1)
		first := boot(t, h, "127.0.0.1", slowly)
		second := boot(t, h, "127.0.0.1", all)
		for i := range int64(turnTime / trickleEvery) {
			if took := second.took.Load(); took != (i+1)*trickle {
				t.Fatalf("after %d waits the second machine has %d bytes", i, took)
			}
			time.Sleep(trickleEvery)
			synctest.Wait()
		}
		start := time.Now()
		<-first.done
		<-second.done
		synctest.Wait()
		if first.took.Load() != kernelSize || second.took.Load() != kernelSize {
			t.Errorf("took %d and %d of %d bytes", first.took.Load(), second.took.Load(), kernelSize)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("both were done after %s more", took)
		}
		var paced int
		for _, o := range b.observed(t) {
			if o.Reason == hardware.ReasonPaced {
				paced++
			}
		}
		if paced != 1 {
			t.Errorf("observed %d times that a download waits", paced)
		}
	})
}

// A machine that lost power gives its turn to the next one; when it takes bytes again
// it lines up behind.
func TestTurnLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := rackHandler(t, 1)
		wake := make(chan struct{})
		dead := boot(t, h, "10.0.0.2", func(r io.Reader) { <-wake; all(r) })
		next := boot(t, h, "10.0.0.3", slowly)
		start := time.Now()
		time.Sleep(turnPatience)
		close(wake) // in the middle of the other's turn
		<-next.done
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the second machine was done after %s", took)
		}
		<-dead.done
		synctest.Wait()
		if next.took.Load() != kernelSize || dead.took.Load() != kernelSize {
			t.Errorf("took %d and %d of %d bytes", dead.took.Load(), next.took.Load(), kernelSize)
		}
	})
}

// Whoever goes away leaves no turn and no place in the line behind.
func TestTurnsAreGivenBack(t *testing.T) {
	t.Parallel()
	g := gate{free: 1}
	who := netip.MustParseAddr("10.0.0.2")
	a, b, c := g.join(who), g.join(who), g.join(who)
	b.leave() // while it waits
	a.leave()
	if !isClosed(c.come()) {
		t.Error("the turn was not handed on")
	}
	c.lapse()
	c.leave()
	c.leave()
	if g.free != 1 || len(g.queue) != 0 || len(g.held) != 0 {
		t.Errorf("%d turns free, %d in line, %v held", g.free, len(g.queue), g.held)
	}
}

// One client has two turns at once and no more, though others are free; that keeps
// nobody else waiting.
func TestTurnsOfOneClient(t *testing.T) {
	t.Parallel()
	g := gate{free: 4}
	one, two := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	a, b, c, d := g.join(one), g.join(one), g.join(one), g.join(one)
	if !isClosed(a.come()) || !isClosed(b.come()) || isClosed(c.come()) || isClosed(d.come()) {
		t.Error("four downloads of one client do not have two turns")
	}
	if !isClosed(g.join(two).come()) {
		t.Error("another client waits, though turns are free")
	}
	b.leave()
	if !isClosed(c.come()) || isClosed(d.come()) {
		t.Error("the turn that the client gave back is not its next download's")
	}
	a.lapse()
	if isClosed(a.come()) || !isClosed(d.come()) {
		t.Error("the turn that lapsed is not its next download's")
	}
}

// A rack behind a thin line holds every turn, each machine just not too slow to lose its
// own: one that is near gets a turn all the same, and none of them is cut off.
func TestSlowRack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const turns = 4
		h, _ := rackHandler(t, turns)
		var rack []*machine
		for i := range turns {
			rack = append(rack, boot(t, h, fmt.Sprintf("10.1.0.%d", i+1), slowly))
		}
		start := time.Now()
		near := boot(t, h, "10.0.0.2", all)
		<-near.done
		if took := time.Since(start); took > turnTime+turnPatience {
			t.Errorf("the machine that is near was done after %s", took)
		}
		for i, m := range append(rack, near) {
			<-m.done
			synctest.Wait()
			if took := m.took.Load(); took != kernelSize {
				t.Errorf("machine %d has %d of %d bytes", i, took, kernelSize)
			}
		}
	})
}

// One client asks as often as it may have connections, and takes each file slowly.
func TestGreedyClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := rackHandler(t, 4)
		var greedy []*machine
		for range 8 {
			greedy = append(greedy, boot(t, h, "10.0.0.2", slowly))
		}
		start := time.Now()
		<-boot(t, h, "10.0.0.3", all).done
		if took := time.Since(start); took != 0 {
			t.Errorf("another client waited for %s", took)
		}
		for i, m := range greedy {
			<-m.done
			synctest.Wait()
			if took := m.took.Load(); took != kernelSize {
				t.Errorf("download %d has %d of %d bytes", i, took, kernelSize)
			}
		}
	})
}

// The kernel holds back what goes to iPXE, and nothing else on the same connection.
func TestRate(t *testing.T) {
	t.Parallel()
	const rate = 12_345_678
	b := newFakeBackend(t, "0123456789")
	inner := NewHandler(newAssets(builtin(), t.TempDir()), b, Pacing{Rate: rate}, quiet())
	got := make(chan int, 1)
	addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		raw, err := r.Context().Value(connKey{}).(*pacedConn).SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		_ = raw.Control(func(fd uintptr) {
			v, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
			if err != nil {
				t.Error(err)
			}
			got <- v
		})
	}))
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		path, agent string
		want        int
	}{
		{"/ipxe/snponly.efi", "UefiHttpBoot/1.0", -1},
		{"/boot/vmlinuz-amd64", "iPXE/1.0.0+git", rate},
		{"/boot/vmlinuz-amd64", "curl/8", -1},
		{"/ipxe/snponly.efi", "iPXE/2.0", rate},
		{"/images/" + imageDigest, "", -1},
	} {
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", tc.agent)
		if err := req.Write(c); err != nil {
			t.Fatal(err)
		}
		if v := <-got; int32(v) != int32(tc.want) {
			t.Errorf("%s for %q: rate %d, want %d", tc.path, tc.agent, v, tc.want)
		}
	}
}
