package l2

import (
	"encoding/binary"
	"time"
)

// Rapid spanning tree (IEEE 802.1Q clause 14.4).
const (
	helloTime      = 2 * time.Second
	bpduRST        = 2
	bpduDesignated = 3 << 2
	bpduLearning   = 1 << 4
	bpduForwarding = 1 << 5
)

// bpdu is the frame with which a root bridge says on a port whether it forwards.
func bpdu(bridge mac, port uint16, forwards bool) []byte {
	flags := byte(bpduDesignated)
	if forwards {
		flags |= bpduLearning | bpduForwarding
	}
	b := []byte{0x01, 0x80, 0xc2, 0, 0, 0}
	b = append(b, bridge[:]...)
	b = binary.BigEndian.AppendUint16(b, 39)     // IEEE 802.3 length: LLC and BPDU
	b = append(b, 0x42, 0x42, 0x03)              // LLC of spanning tree
	b = append(b, 0, 0, bpduRST, bpduRST, flags) // protocol, version, type
	b = append(append(b, 0x80, 0), bridge[:]...) // root identifier
	b = append(b, 0, 0, 0, 0)                    // root path cost
	b = append(append(b, 0x80, 0), bridge[:]...) // bridge identifier
	b = binary.BigEndian.AppendUint16(b, 0x8000|port)
	for _, seconds := range []byte{0, 20, byte(helloTime / time.Second), 15} { // message age, max age, hello, forward delay
		b = append(b, seconds, 0)
	}
	b = append(b, 0) // version 1 length
	return append(b, make([]byte, 60-len(b))...)
}
