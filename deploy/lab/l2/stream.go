package l2

import (
	"encoding/binary"
	"fmt"
	"io"
)

// QEMU puts the length of a frame before it on its stream sockets, in four bytes
// of network order (net/stream.c).

func readFrame(r io.Reader, buf []byte) (int, error) {
	if _, err := io.ReadFull(r, buf[:4]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(buf))
	if n > len(buf) {
		return 0, fmt.Errorf("a frame of %d bytes", n)
	}
	_, err := io.ReadFull(r, buf[:n])
	return n, err
}

func writeFrame(w io.Writer, frame []byte) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame)))
	_, err := w.Write(append(b, frame...))
	return err
}
