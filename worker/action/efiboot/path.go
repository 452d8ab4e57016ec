package efiboot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// Types and subtypes of device path nodes (UEFI 2.10, section 10.3).
const (
	typeMedia, mediaHardDrive, mediaFile = 4, 1, 4
	typeEnd, endEntire                   = 0x7f, 0xff
)

// ErrFormat says that the bytes are no load option or device path, or one that could not
// be written back as it was.
var ErrFormat = errors.New("not as the UEFI specification says")

// Node is one step of a device path.
type Node struct {
	Type, Subtype byte
	Data          []byte // without the header, at most 65531 bytes
}

// Path is a device path without the node that ends it.
type Path []Node

// append encodes p with its end node. The nodes are not longer than can be said.
func (p Path) append(b []byte) []byte {
	for _, n := range append(p[:len(p):len(p)], Node{Type: typeEnd, Subtype: endEntire}) {
		b = append(b, n.Type, n.Subtype)
		b = binary.LittleEndian.AppendUint16(b, uint16(4+len(n.Data)))
		b = append(b, n.Data...)
	}
	return b
}

// cutPath decodes the device path at the start of b and returns what is after it.
func cutPath(b []byte) (p Path, rest []byte, err error) {
	for len(b) >= 4 {
		size := int(binary.LittleEndian.Uint16(b[2:]))
		if size < 4 || size > len(b) {
			return nil, nil, fmt.Errorf("%w: a device path node of %d bytes in %d", ErrFormat, size, len(b))
		}
		n := Node{Type: b[0], Subtype: b[1], Data: b[4:size:size]}
		b = b[size:]
		if n.Type == typeEnd && n.Subtype == endEntire {
			if size != 4 {
				return nil, nil, fmt.Errorf("%w: an end node of %d bytes", ErrFormat, size)
			}
			return p, b, nil
		}
		p = append(p, n)
	}
	return nil, nil, fmt.Errorf("%w: a device path without an end", ErrFormat)
}

// Partition is a partition of a GPT as a hard drive node names it (UEFI 2.10,
// section 10.3.5.1). A path that begins with it is the short form: the firmware
// looks for the partition on every disk.
type Partition struct {
	Number      uint32 // from 1
	Start, Size uint64 // in logical blocks
	GUID        [16]byte
}

// hardDrive is the node behind its header.
type hardDrive struct {
	Partition
	Format, SignatureType byte // 2: GPT; 2: the signature is a GUID
}

// Node encodes p.
func (p Partition) Node() Node {
	data := make([]byte, 38)
	// The size is right, so it cannot fail.
	_, _ = binary.Encode(data, binary.LittleEndian, hardDrive{p, 2, 2})
	return Node{typeMedia, mediaHardDrive, data}
}

// Partition decodes n; ok is false when it does not name a partition of a GPT.
func (n Node) Partition() (p Partition, ok bool) {
	var h hardDrive
	if n.Type != typeMedia || n.Subtype != mediaHardDrive || len(n.Data) != binary.Size(h) {
		return p, false
	}
	_, err := binary.Decode(n.Data, binary.LittleEndian, &h)
	return h.Partition, err == nil && h.Format == 2 && h.SignatureType == 2
}

// FileNode names a file of the volume that the nodes before it lead to (UEFI
// 2.10, section 10.3.5.4). name has backslashes.
func FileNode(name string) Node {
	return Node{typeMedia, mediaFile, appendText(nil, name)}
}

// File decodes n; ok is false when it does not name a file.
func (n Node) File() (name string, ok bool) {
	if n.Type != typeMedia || n.Subtype != mediaFile {
		return "", false
	}
	name, rest, err := cutText(n.Data)
	return name, err == nil && len(rest) == 0
}

// appendText adds s in little-endian UTF-16 with a zero at its end.
func appendText(b []byte, s string) []byte {
	s, _, _ = strings.Cut(s, "\x00")
	for _, u := range append(utf16.Encode([]rune(s)), 0) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// cutText decodes the text at the start of b and returns what is after its zero.
func cutText(b []byte) (text string, rest []byte, err error) {
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		u := binary.LittleEndian.Uint16(b)
		if u == 0 {
			runes := utf16.Decode(units)
			if !slices.Equal(utf16.Encode(runes), units) {
				return "", nil, fmt.Errorf("%w: half a surrogate pair", ErrFormat)
			}
			return string(runes), b[2:], nil
		}
		units = append(units, u)
	}
	return "", nil, fmt.Errorf("%w: text without an end", ErrFormat)
}

// maxPaths is what the 16-bit length of the paths in a load option can say.
const maxPaths = math.MaxUint16
