package tftp

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{"a/b": pattern(2000), "even": pattern(1024), "empty": {}}
	s, h, w := start(t, content, 0)
	for name, want := range content {
		if got := dial(t).fetch(loopback(s), "/"+name); !bytes.Equal(got, want) {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(want))
		}
		d := await(t, "Done", w.done)
		if d.err != nil || d.Name != name || d.Bytes != int64(len(want)) || d.Size != int64(len(want)) {
			t.Errorf("observed %+v", d)
		}
	}
	if o, c := h.opened.Load(), h.closed.Load(); o != c {
		t.Errorf("%d files opened, %d closed", o, c)
	}
}

// panics is a Handler that fails on one name.
type panics struct{ *files }

func (p panics) Open(ctx context.Context, client netip.AddrPort, name string) (File, error) {
	if name == "bad" {
		panic("no such arithmetic")
	}
	return p.files.Open(ctx, client, name)
}

// TestARequestThatPanics ends, gives its place back, and the others are served.
func TestARequestThatPanics(t *testing.T) {
	t.Parallel()
	s, h, w := start(t, map[string][]byte{"f": pattern(100)}, 0)
	s.cfg.Handler = panics{h}
	for range maxPerClient + 1 {
		p := dial(t)
		p.send(loopback(s), rq(1, "bad", "octet"))
		if op, code, _ := p.receive(); op != 5 || code != 1 {
			t.Fatalf("answered %d/%d, want an error", op, code)
		}
	}
	for range maxPerClient + 1 {
		if r := await(t, "Refused", w.refused); r.name != "bad" || errors.Is(r.err, ErrBusy) {
			t.Errorf("observed %+v", r)
		}
	}
	if got := dial(t).fetch(loopback(s), "f"); len(got) != 100 {
		t.Errorf("the next file has %d bytes", len(got))
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s, _, _ := start(t, map[string][]byte{"f": pattern(5000)}, 0)
	for _, tt := range []struct {
		name  string
		asked []string
		want  map[string]string
		block int
	}{
		{"edk2", []string{"tsize", "0", "blksize", "1468", "windowsize", "4"}, map[string]string{"tsize": "5000", "blksize": "1468"}, 1468},
		{"iPXE", []string{"blksize", "1432", "tsize", "0"}, map[string]string{"tsize": "5000", "blksize": "1432"}, 1432},
		{"larger than a frame", []string{"blksize", "65464"}, map[string]string{"blksize": "1468"}, 1468},
		{"a tsize that is not 0", []string{"tsize", "99"}, map[string]string{"tsize": "5000"}, 512},
	} {
		p := dial(t)
		p.send(loopback(s), rq(1, append([]string{"f", "octet"}, tt.asked...)...))
		op, arg, rest := p.receive()
		if op != 6 {
			t.Fatalf("%s: opcode %d", tt.name, op)
		}
		words := strings.Split(strings.TrimSuffix(string([]byte{byte(arg >> 8), byte(arg)})+string(rest), "\x00"), "\x00")
		got := map[string]string{}
		for i := 0; i+1 < len(words); i += 2 {
			got[words[i]] = words[i+1]
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: options %v, want %v", tt.name, got, tt.want)
		}
		for k, v := range tt.want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", tt.name, k, got[k], v)
			}
		}
		p.ack(0)
		if op, block, data := p.receive(); op != 3 || block != 1 || len(data) != tt.block {
			t.Errorf("%s: packet %d/%d with %d bytes", tt.name, op, block, len(data))
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s, h, w := start(t, map[string][]byte{"f": {1}}, 0)
	for _, tt := range []struct {
		name   string
		packet []byte
		want   error
		answer string
	}{
		{"not there", rq(1, "revocations.efi", "octet"), fs.ErrNotExist, "file not found"},
		{"outside", rq(1, "../../etc/passwd", "octet"), ErrNameOutside, "refused"},
		{"empty", rq(1, "", "octet"), ErrNameEmpty, "refused"},
		{"long", rq(1, strings.Repeat("x", 400), "octet"), ErrNameLong, "refused"},
		{"control", rq(1, "a\nb", "octet"), ErrNameChars, "refused"},
		{"write", rq(2, "f", "octet"), ErrWrite, "read-only"},
	} {
		p := dial(t)
		p.send(loopback(s), tt.packet)
		op, code, text := p.receive()
		if op != 5 || code != 1 || !strings.Contains(string(text), tt.answer) {
			t.Errorf("%s: answer %d/%d %q", tt.name, op, code, text)
		}
		if r := await(t, "Refused", w.refused); !errors.Is(r.err, tt.want) || !r.client.IsValid() {
			t.Errorf("%s: observed %+v", tt.name, r)
		}
	}
	dial(t).send(loopback(s), []byte{0, 9, 1, 2})
	if r := await(t, "Refused", w.refused); !errors.Is(r.err, ErrMalformed) {
		t.Errorf("malformed: observed %+v", r)
	}
	if h.opened.Load() != 0 {
		t.Error("a refused request opened a file")
	}
}

// Firmware asks for the size, and ends the transfer with an error packet.
func TestClientEnds(t *testing.T) {
	t.Parallel()
	s, _, w := start(t, map[string][]byte{"f": pattern(5000)}, 0)
	edk2 := dial(t)
	edk2.send(loopback(s), rq(1, "f", "octet", "tsize", "0"))
	edk2.receive()
	edk2.send(edk2.tid, append([]byte{0, 5, 0, 8}, "User aborted the transfer\x00"...))
	if d := await(t, "Done", w.done); !errors.Is(d.err, ErrProbe) {
		t.Errorf("size probe: %+v", d)
	}
	grub := dial(t)
	grub.send(loopback(s), rq(1, "f", "octet"))
	grub.receive()
	grub.send(grub.tid, append([]byte{0, 5, 0, 0}, "closed\x00"...))
	if d := await(t, "Done", w.done); !errors.Is(d.err, ErrStopped) {
		t.Errorf("ended in the middle: %+v", d)
	}
}

// Lost packets: a block is sent again when its ACK does not come, an old ACK is
// not taken for a new one, and a client that is gone is given up.
func TestLoss(t *testing.T) {
	t.Parallel()
	s, h, w := start(t, map[string][]byte{"f": pattern(2000)}, 20*time.Millisecond)
	p := dial(t)
	p.send(loopback(s), rq(1, "f", "octet"))
	for range 2 {
		if op, block, _ := p.receive(); op != 3 || block != 1 {
			t.Fatalf("packet %d/%d, want block 1", op, block)
		}
	}
	p.ack(1)
	p.ack(1)
	p.ack(1)
	_, block, _ := p.receive()
	for block == 1 {
		_, block, _ = p.receive() // was under way
	}
	if block != 2 {
		t.Fatalf("block %d, want 2", block)
	}
	d := await(t, "Done", w.done)
	if !errors.Is(d.err, ErrTimeout) {
		t.Errorf("observed %+v", d)
	}
	if h.closed.Load() != 1 || s.busy() != 0 {
		t.Errorf("%d files closed, %d transfers left", h.closed.Load(), s.busy())
	}
}

func TestTooManyForOneClient(t *testing.T) {
	t.Parallel()
	s, _, w := start(t, map[string][]byte{"f": pattern(2000)}, 0)
	for range maxPerClient {
		p := dial(t)
		p.send(loopback(s), rq(1, "f", "octet"))
		p.receive()
	}
	p := dial(t)
	p.send(loopback(s), rq(1, "f", "octet"))
	if op, _, text := p.receive(); op != 5 || !strings.Contains(string(text), "too many") {
		t.Errorf("answer %d %q", op, text)
	}
	if r := await(t, "Refused", w.refused); !errors.Is(r.err, ErrBusy) {
		t.Errorf("observed %+v", r)
	}
}

// Run ends with its context though a transfer waits for its client.
func TestStop(t *testing.T) {
	t.Parallel()
	h, w := &files{content: map[string][]byte{"f": pattern(2000)}}, newWitness()
	s, err := New(Config{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Handler: h, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	s.timeout = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	await(t, "Ready", s.Ready())
	p := dial(t)
	p.send(s.Addr(), rq(1, "f", "octet"))
	p.receive()
	cancel()
	if err := await(t, "the end of Run", result); err != nil {
		t.Error(err)
	}
	if h.closed.Load() != 1 {
		t.Error("the file was not closed")
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	s, h, _ := start(t, nil, 0)
	second, err := New(Config{Listen: s.Addr(), Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Run on a taken port: %v", err)
	}
}

// Whatever comes, the next client is served.
func FuzzPackets(f *testing.F) {
	seeds := [][]byte{
		rq(1, "f", "octet"), rq(1, "f", "netascii", "blksize", "8"), rq(2, "f", "octet"),
		rq(1, "f", "octet", "blksize", "-1", "tsize", "18446744073709551616"),
		rq(1, "f", "octet", "tsize", strings.Repeat("9", 400)),
		{0, 1, 0, 0},
		{0, 4, 0, 0},
		{0, 5, 0, 0, 0},
		{0},
		{},
	}
	for _, b := range seeds {
		f.Add(b)
	}
	want := pattern(700)
	s, _, w := start(f, map[string][]byte{"f": want}, 5*time.Millisecond)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 1400)]                      // no more than a frame
		hostile := dialFrom(t, net.IPv4(127, 0, 0, 3)) // the limit of one client is its own
		hostile.send(loopback(s), b)
		if got := dial(t).fetch(loopback(s), "f"); !bytes.Equal(got, want) {
			t.Fatalf("the client after %q got %d bytes", b, len(got))
		}
		_ = hostile.conn.Close()
		for len(w.done) > 0 {
			<-w.done
		}
		for len(w.refused) > 0 {
			<-w.refused
		}
	})
}
