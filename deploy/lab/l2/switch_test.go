package l2

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// plug connects a port as QEMU does, and returns QEMU's end.
func plug(t *testing.T, s *Switch, port int) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	if err := s.Plug(port, ours); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	_ = theirs.SetDeadline(time.Now().Add(20 * time.Second))
	return theirs
}

func newSwitch(t *testing.T, ports ...Port) *Switch {
	t.Helper()
	s := New()
	t.Cleanup(func() { _ = s.Close() })
	for i, p := range ports {
		if n, err := s.AddPort(p); err != nil || n != i {
			t.Fatalf("port %d: %d, %v", i, n, err)
		}
	}
	return s
}

func receive(t *testing.T, conn net.Conn, want []byte) {
	t.Helper()
	buf := make([]byte, maxFrame)
	n, err := readFrame(conn, buf)
	if err != nil || !bytes.Equal(buf[:n], want) {
		t.Fatalf("received %x, %v; want %x", buf[:n], err, want)
	}
}

func TestSwitchCarriesFrames(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	s := newSwitch(t, Port{}, Port{Delay: delay}, Port{})
	path := filepath.Join(t.TempDir(), "pcap")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := s.Capture(file); err != nil {
		t.Fatal(err)
	}
	a, b := plug(t, s, 0), plug(t, s, 1)
	began := time.Now()
	hello := eth(bob, alice, 0, "hello")
	if err := writeFrame(a, hello); err != nil {
		t.Fatal(err)
	}
	receive(t, b, hello)
	if d := time.Since(began); d < delay {
		t.Errorf("arrived after %v over a cable of %v", d, delay)
	}
	back := eth(alice, bob, 0, "hello yourself")
	if err := writeFrame(b, back); err != nil {
		t.Fatal(err)
	}
	receive(t, a, back)

	// A machine that is switched off and on again takes the same port.
	_ = b.Close()
	b = plug(t, s, 1)
	if err := writeFrame(a, hello); err != nil {
		t.Fatal(err)
	}
	receive(t, b, hello)
	if err := s.Flap(2); err != nil { // has no link
		t.Fatal(err)
	}
	if ok, why, err := s.Forwards(2); ok || why == "" || err != nil {
		t.Errorf("a port without a link: %v, %q, %v", ok, why, err)
	}

	// A frame that is too long ends the link, as it would with a cable of another kind.
	if _, err := a.Write(binary.BigEndian.AppendUint32(nil, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(make([]byte, 1)); err == nil {
		t.Error("a frame of a megabyte was taken")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Flap(0); err == nil {
		t.Error("a switch that is closed flaps")
	}
	pcap, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(pcap, []byte{0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0}) || bytes.Count(pcap, hello) != 4 || bytes.Count(pcap, back) != 2 {
		t.Errorf("the capture (%v): %x", err, pcap)
	}
}

func TestSwitchBlocksAgainAfterAFlap(t *testing.T) {
	t.Parallel()
	s := newSwitch(t, Port{}, Port{Blocked: time.Hour, BPDU: true})
	b := plug(t, s, 1)
	for range 2 { // BPDUs pass, and the first comes at once after the link
		buf := make([]byte, maxFrame)
		if n, err := readFrame(b, buf); err != nil || destination(buf[:n]) != (mac{1, 0x80, 0xc2}) {
			t.Fatalf("%x, %v", buf[:n], err)
		}
		if err := s.Flap(1); err != nil {
			t.Fatal(err)
		}
	}
	if ok, why, err := s.Forwards(1); ok || err != nil || why != "spanning tree has it closed" {
		t.Errorf("%v, %q, %v", ok, why, err)
	}
}
