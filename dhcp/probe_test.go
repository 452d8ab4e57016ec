package dhcp

import (
	"bytes"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

// passes runs a filter as the kernel would.
func passes(t testing.TB, filter []unix.SockFilter, packet []byte) bool {
	t.Helper()
	raw := make([]bpf.RawInstruction, len(filter))
	for i, f := range filter {
		raw[i] = bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	ins, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatalf("the program is not understood: %v", ins)
	}
	vm, err := bpf.NewVM(ins)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// FuzzARP: what is read is what was sent, the kernel's filter lets through no less, and
// a probe of ours says nothing of us.
func FuzzARP(f *testing.F) {
	reply := arpProbe(hardware.MAC{0x52, 1}, netip.MustParseAddr("10.0.0.9"))
	reply[arpOp+1] = arpReply
	copy(reply[arpSenderIP:], []byte{10, 0, 0, 9})
	f.Add(reply)
	f.Add(append(reply, make([]byte, 18)...)) // padded to Ethernet's least
	f.Add(arpProbe(hardware.MAC{0x52, 1}, netip.MustParseAddr("10.0.0.9")))
	f.Add(reply[:27])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, who, ok := readARP(b)
		if !ok {
			return
		}
		if !passes(t, arpClaims(), b) {
			t.Errorf("the filter drops %x", b)
		}
		s := a.As4()
		if !bytes.Equal(b[arpSenderIP:arpSenderIP+4], s[:]) || !bytes.Equal(b[arpSenderMAC:arpSenderMAC+6], who[:]) || a.IsUnspecified() {
			t.Errorf("%x is %s at %s", b, a, who)
		}
		probe := arpProbe(who, a)
		if _, _, ok := readARP(probe); ok || passes(t, arpClaims(), probe) || len(probe) != arpSize || !bytes.Equal(probe[arpTargetIP:], s[:]) {
			t.Errorf("a probe claims an address: %x", probe)
		}
	})
}

// FuzzICMP: only answers to our own echoes are, and the filter agrees.
func FuzzICMP(f *testing.F) {
	echo := icmpProbe(7, 1)
	if Sum(0, echo) != 0xffff {
		f.Fatalf("checksum of %x", echo)
	}
	f.Add(echo, uint16(7))
	reply := bytes.Clone(echo)
	reply[0] = icmpEchoReply
	f.Add(reply, uint16(7))
	f.Add(reply, uint16(8))
	f.Add(reply[:7], uint16(7))
	f.Fuzz(func(t *testing.T, b []byte, id uint16) {
		header := append([]byte{0x45}, make([]byte, 19)...)
		ours := readICMP(b, id)
		if len(b) >= icmpSize && passes(t, echoReplies(id), append(header, b...)) != ours {
			t.Errorf("ours: %v, and the filter says otherwise: %x", ours, b)
		}
		if ours && (b[0] != 0 || b[4] != byte(id>>8) || b[5] != byte(id)) {
			t.Errorf("taken for ours: %x", b)
		}
	})
}
