package l2

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// udp is a frame with a datagram from alice to bob.
func udp(from, to uint16, data string) []byte {
	ip := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1}
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+8+len(data)))
	b := eth(bob, alice, 0, string(ip))
	b[12], b[13] = 0x08, 0x00
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(data)))
	b = append(append(b, 0, 0), data...)
	udpChecksum(b, headerSize+20, 8+len(data))
	return b
}

// discover is a DHCP packet with these options, in hex.
func discover(options ...string) string {
	b := make([]byte, optionsOffset)
	b[0], b[1], b[2] = 1, 1, 6
	copy(b[236:], []byte{0x63, 0x82, 0x53, 0x63})
	for _, o := range options {
		h, err := hex.DecodeString(o)
		if err != nil {
			panic(err)
		}
		b = append(b, h...)
	}
	return string(b)
}

// sums reports whether the checksum of the datagram is right: all words and the
// pseudo header add up to ffff (RFC 768, RFC 1071).
func sums(frame []byte) bool {
	udp := frame[headerSize+20:]
	b := append(append([]byte{0, 17}, frame[headerSize+12:headerSize+20]...), udp[4:6]...)
	b = append(b, udp...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	var sum uint32
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return sum == 0xffff
}

const (
	typeDiscover = "350101"
	vendorClass  = "3c03505845"
	ipxeClass    = "4d0469505845"
	ipxeFeatures = "af06eb0301000013"
)

func TestPlainPXEHidesTheROM(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, want string }{
		"in the middle": {discover(typeDiscover, ipxeClass, vendorClass, ipxeFeatures, "ff"), discover(typeDiscover, vendorClass, "ff")},
		"at the end":    {discover(typeDiscover, vendorClass, "00", ipxeFeatures, "ff0000"), discover(typeDiscover, vendorClass, "00", "ff")},
		"nothing to do": {discover(typeDiscover, vendorClass, "ff"), discover(typeDiscover, vendorClass, "ff")},
		"no end":        {discover(typeDiscover, ipxeClass), discover(typeDiscover, "ff")},
		"cut short":     {discover(typeDiscover, "af50eb"), discover(typeDiscover, "af50eb")},
		"no options":    {strings.Repeat("\x01", 100), strings.Repeat("\x01", 100)},
	} {
		for _, port := range []uint16{portDHCP, portPXE} {
			var p plainPXE
			frame := udp(68, port, tc.from)
			before := bytes.Clone(frame)
			got := p.fromClient(frame)
			if !bytes.Equal(frame, before) {
				t.Errorf("%s: the given frame was changed", name)
			}
			want := udp(68, port, tc.want+strings.Repeat("\x00", len(tc.from)-len(tc.want)))
			if !bytes.Equal(got, want) || !sums(got) {
				t.Errorf("%s:\nhave %x\nwant %x", name, got, want)
			}
		}
	}
	var p plainPXE
	for name, frame := range map[string][]byte{
		"a server's answer": udp(67, 68, discover(typeDiscover, ipxeClass, "ff")),
		"no UDP":            eth(bob, alice, 0, "x"),
		"a fragment":        func() []byte { b := udp(68, 67, discover(ipxeClass)); b[headerSize+6] = 0x20; return b }(),
	} {
		if got := p.fromClient(frame); !bytes.Equal(got, frame) {
			t.Errorf("%s: became %x", name, got)
		}
	}
}

// TestPlainPXEUntilFetched: the marks are taken out until the last block of a file is
// acknowledged, however often the ROM asks.
func TestPlainPXEUntilFetched(t *testing.T) {
	t.Parallel()
	dhcp := udp(68, portDHCP, discover(typeDiscover, ipxeClass, "ff"))
	for name, tc := range map[string]struct {
		steps []string // c: from the client, s: to it
		want  bool     // fetched
	}{
		"in 512 bytes":            {[]string{"c \x00\x01u.kpxe\x00octet\x00", "s \x00\x03\x00\x01" + strings.Repeat("x", 512), "c \x00\x04\x00\x01", "s \x00\x03\x00\x02end", "c \x00\x04\x00\x02"}, true},
		"with options":            {[]string{"c \x00\x01u.kpxe\x00octet\x00blksize\x001432\x00", "s \x00\x06tsize\x0099\x00blksize\x001432\x00", "c \x00\x04\x00\x00", "s \x00\x03\x00\x01" + strings.Repeat("x", 600), "c \x00\x04\x00\x01"}, true},
		"a last block of nothing": {[]string{"c \x00\x01u\x00octet\x00", "s \x00\x03\x00\x01" + strings.Repeat("x", 512), "c \x00\x04\x00\x01", "s \x00\x03\x00\x02", "c \x00\x04\x00\x02"}, true},
		"half of it":              {[]string{"c \x00\x01u\x00octet\x00", "s \x00\x03\x00\x01" + strings.Repeat("x", 512), "c \x00\x04\x00\x01"}, false},
		"the size only":           {[]string{"c \x00\x01u\x00octet\x00tsize\x000\x00", "s \x00\x06tsize\x0099\x00", "c \x00\x05\x00\x00stop\x00"}, false},
		"an error":                {[]string{"c \x00\x01u\x00octet\x00", "s \x00\x05\x00\x01not found\x00"}, false},
		"not acknowledged":        {[]string{"c \x00\x01u\x00octet\x00", "s \x00\x03\x00\x01end"}, false},
		"asked again":             {[]string{"c \x00\x01u\x00octet\x00", "s \x00\x03\x00\x01end", "c \x00\x01u\x00octet\x00", "c \x00\x04\x00\x01"}, false},
	} {
		var p plainPXE
		for _, s := range tc.steps {
			switch data := s[2:]; {
			case s[0] == 's':
				p.toClient(udp(5000, 2070, data))
			case data[1] == tftpRead:
				p.fromClient(udp(2070, portTFTP, data))
			default:
				p.fromClient(udp(2070, 5000, data))
			}
		}
		if p.fetched != tc.want || bytes.Equal(p.fromClient(dhcp), dhcp) != tc.want {
			t.Errorf("%s: fetched: %v", name, p.fetched)
		}
	}
}

// FuzzPlainPXE: whatever comes, a frame keeps its length, and what the hook changed has
// a right checksum and none of the marks.
func FuzzPlainPXE(f *testing.F) {
	for _, options := range []string{ipxeClass, ipxeFeatures, vendorClass} {
		f.Add(udp(68, portDHCP, discover(typeDiscover, options, "ff")))
	}
	f.Add(udp(68, portTFTP, "\x00\x01u\x00octet\x00"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < headerSize {
			return
		}
		var p plainPXE
		got := p.fromClient(frame)
		p.client = 68
		p.toClient(frame)
		if len(got) != len(frame) {
			t.Fatalf("%d bytes became %d", len(frame), len(got))
		}
		if bytes.Equal(got, frame) {
			return
		}
		if again := new(plainPXE).fromClient(got); !bytes.Equal(again, got) {
			t.Errorf("twice is not once: %x, %x", got, again)
		}
	})
}
