package l2

import (
	"encoding/binary"
	"io"
	"time"
)

// pcapHeader begins a file of Ethernet frames with times in nanoseconds
// (draft-ietf-opsawg-pcap section 4).
func pcapHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, maxFrame)
	return binary.LittleEndian.AppendUint32(b, 1)
}

// pcapFrame writes one packet record (section 5).
func pcapFrame(w io.Writer, now time.Time, frame []byte) error {
	b := make([]byte, 0, 16+len(frame))
	b = binary.LittleEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(now.Nanosecond()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	_, err := w.Write(append(b, frame...))
	return err
}
