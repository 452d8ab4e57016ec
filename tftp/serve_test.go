package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds the waits for something that must happen.
const patience = 30 * time.Second

// files is a Handler over a map; closed counts the files given back.
type files struct {
	content        map[string][]byte
	opened, closed atomic.Int64
}

type memFile struct {
	*bytes.Reader
	of *files
}

func (m memFile) Close() error { m.of.closed.Add(1); return nil }

func (h *files) Open(_ context.Context, _ netip.AddrPort, name string) (File, error) {
	b, ok := h.content[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	h.opened.Add(1)
	return memFile{bytes.NewReader(b), h}, nil
}

type done struct {
	Transfer
	err error
}

type refusal struct {
	client netip.AddrPort
	name   string
	err    error
}

// witness is an Observer that keeps what it hears.
type witness struct {
	done    chan done
	refused chan refusal
}

func newWitness() *witness {
	return &witness{make(chan done, 4096), make(chan refusal, 4096)}
}

func (w *witness) Done(t Transfer, err error) { w.done <- done{t, err} }
func (w *witness) Refused(c netip.AddrPort, name string, err error) {
	w.refused <- refusal{c, name, err}
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// pattern is n bytes of which no two blocks are equal.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.BigEndian.PutUint64(b[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	return b
}

// start serves content on a port of its own, and stops with the test.
func start(t testing.TB, content map[string][]byte, timeout time.Duration) (*Server, *files, *witness) {
	t.Helper()
	h, w := &files{content: content}, newWitness()
	s, err := New(Config{Listen: netip.MustParseAddrPort("0.0.0.0:0"), Handler: h, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	if timeout > 0 {
		s.timeout = timeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-result:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run did not end")
		}
	})
	select {
	case <-s.Ready():
	case err := <-result:
		t.Fatalf("Run: %v", err)
	}
	return s, h, w
}

// peer is a hand-driven client on loopback.
type peer struct {
	t    testing.TB
	conn *net.UDPConn
	tid  netip.AddrPort
}

func dial(t testing.TB) *peer {
	t.Helper()
	return dialFrom(t, net.IPv4(127, 0, 0, 1))
}

func dialFrom(t testing.TB, ip net.IP) *peer {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: ip})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t: t, conn: conn}
}

// rq is a read or write request: opcode, then zero-terminated words.
func rq(op uint16, words ...string) []byte {
	b := binary.BigEndian.AppendUint16(nil, op)
	for _, w := range words {
		b = append(append(b, w...), 0)
	}
	return b
}

func (p *peer) send(to netip.AddrPort, b []byte) {
	p.t.Helper()
	if _, err := p.conn.WriteToUDPAddrPort(b, to); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the next packet and notes its sender as the transfer's other end.
func (p *peer) receive() (op, arg uint16, rest []byte) {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 65536)
	n, from, err := p.conn.ReadFromUDPAddrPort(buf)
	if err != nil || n < 4 {
		p.t.Fatalf("receive: %d bytes, %v", n, err)
	}
	p.tid = from
	return binary.BigEndian.Uint16(buf), binary.BigEndian.Uint16(buf[2:]), buf[4:n]
}

func (p *peer) ack(block uint16) {
	p.t.Helper()
	p.send(p.tid, binary.BigEndian.AppendUint16([]byte{0, 4}, block))
}

// fetch gets a file as a plain RFC 1350 client.
func (p *peer) fetch(to netip.AddrPort, name string) []byte {
	p.t.Helper()
	p.send(to, rq(1, name, "octet"))
	var out []byte
	for want := uint16(1); ; want++ {
		op, block, data := p.receive()
		for op == 3 && block == want-1 {
			op, block, data = p.receive() // sent again before our ACK came
		}
		if op != 3 || block != want {
			p.t.Fatalf("packet %d/%d %q, want block %d", op, block, data, want)
		}
		out = append(out, data...)
		p.ack(block)
		if len(data) < 512 {
			return out
		}
	}
}

func loopback(s *Server) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.Addr().Port())
}
