package l2

import (
	"encoding/binary"
	"net"
)

// Ethernet (IEEE 802.3 clause 3.1.1, IEEE 802.1Q clause 9).
const (
	headerSize = 14
	tagSize    = 4
	maxFrame   = 1 << 16 // what a TAP or QEMU may hand over with offloading

	typeTag  = 0x8100
	typeIPv4 = 0x0800
	typeSlow = 0x8809 // IEEE 802.3 annex 57A
)

// mac is a hardware address as a key.
type mac [6]byte

func (m mac) String() string  { return net.HardwareAddr(m[:]).String() }
func (m mac) multicast() bool { return m[0]&1 != 0 }

// linkLocal reports whether a bridge must not forward frames to this address
// (IEEE 802.1Q table 8-1): 01-80-C2-00-00-00 to 0F.
func (m mac) linkLocal() bool {
	return m[0] == 0x01 && m[1] == 0x80 && m[2] == 0xc2 && m[3] == 0 && m[4] == 0 && m[5] < 0x10
}

func destination(frame []byte) mac { return mac(frame[0:6]) }
func source(frame []byte) mac      { return mac(frame[6:12]) }
func etherType(frame []byte) uint16 {
	return binary.BigEndian.Uint16(frame[12:14])
}

// tagOf is the VLAN that a frame says it is in; 0 where it has no tag, or one that
// gives a priority only.
func tagOf(frame []byte) (vlan uint16, tagged bool) {
	if etherType(frame) != typeTag || len(frame) < headerSize+tagSize {
		return 0, false
	}
	return binary.BigEndian.Uint16(frame[14:16]) & 0xfff, true
}

// untag returns a copy of a tagged frame without its tag.
func untag(frame []byte) []byte {
	out := make([]byte, 0, len(frame)-tagSize)
	return append(append(out, frame[:12]...), frame[16:]...)
}

// tag returns a copy of a frame with a tag of that VLAN.
func tag(frame []byte, vlan uint16) []byte {
	out := make([]byte, 0, len(frame)+tagSize)
	out = append(out, frame[:12]...)
	out = binary.BigEndian.AppendUint16(out, typeTag)
	out = binary.BigEndian.AppendUint16(out, vlan)
	return append(out, frame[12:]...)
}
