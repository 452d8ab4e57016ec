// Package qcow2 reads disk images in QEMU's qcow2 format, versions 2 and 3, as
// https://gitlab.com/qemu-project/qemu/-/blob/master/docs/interop/qcow2.txt has it.
// It is strict: what it does not know it refuses, by name. It trusts nothing in a
// file, and its memory does not depend on the file.
package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors of this package wrap exactly one of these, or are the source's own.
var (
	// ErrUnsupported: a feature of the format that is refused.
	ErrUnsupported = errors.New("this qcow2 image cannot be used")
	// ErrCorrupt: the file contradicts itself.
	ErrCorrupt = errors.New("qcow2 image is corrupt")
	// ErrTruncated: a part that the file names is not in it.
	ErrTruncated = errors.New("qcow2 image is truncated")
)

// Magic is how a qcow2 file begins.
const Magic = "QFI\xfb"

// MaxDisk is the largest disk that is read, in bytes.
const MaxDisk = 16 << 40

const (
	minClusterBits, maxClusterBits = 9, 21
	maxHeader                      = 64 << 10
	maxL1Bytes                     = 32 << 20 // qemu's own limit
)

// The incompatible features: bits 0 to 4 of version 3.
const (
	featureDirty = 1 << iota
	featureCorrupt
	featureDataFile
	featureCompression
	featureExtendedL2
)

// header is what is needed of one.
type header struct {
	version     uint32
	clusterBits uint
	size        int64 // of the disk
	l1Offset    int64
	l1Entries   int64
	zstd        bool // compressed clusters are zstd, not deflate
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func truncated(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTruncated, fmt.Sprintf(format, args...))
}

// readHeader reads and judges the header of a file of that many bytes.
func readHeader(r io.ReaderAt, fileSize int64) (header, error) {
	b := make([]byte, min(maxHeader, fileSize))
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return header{}, short(err, "its header")
	}
	if len(b) < 72 || string(b[:4]) != Magic {
		return header{}, corrupt("it has no qcow2 header")
	}
	be := binary.BigEndian
	h := header{version: be.Uint32(b[4:])}
	bits := be.Uint32(b[20:])
	switch {
	case h.version != 2 && h.version != 3:
		return h, unsupported("it is of version %d (convert it: qemu-img convert -O qcow2 IN OUT)", h.version)
	case h.version == 3 && len(b) < 104:
		return h, truncated("it ends in its header")
	case bits < minClusterBits || bits > maxClusterBits:
		return h, corrupt("its clusters have 2^%d bytes", bits)
	}
	h.clusterBits = uint(bits)
	if off := be.Uint64(b[8:]); off != 0 {
		return h, unsupported("it has a backing file%s, without which it is not a whole disk (flatten it: qemu-img convert -O qcow2 IN OUT)", backingName(b, off, be.Uint32(b[16:])))
	}
	switch m := be.Uint32(b[32:]); m {
	case 0:
	case 1:
		return h, unsupported("it is encrypted with AES (decrypt it with qemu-img convert)")
	case 2:
		return h, unsupported("it is encrypted with LUKS (decrypt it with qemu-img convert)")
	default:
		return h, unsupported("it is encrypted with the unknown method %d", m)
	}
	if h.version == 3 {
		if err := h.features(b); err != nil {
			return h, err
		}
	}
	return h, h.tables(b, fileSize)
}

// tables reads the disk's size and where the L1 table is.
func (h *header) tables(b []byte, fileSize int64) error {
	be := binary.BigEndian
	size, l1, off := be.Uint64(b[24:]), be.Uint32(b[36:]), be.Uint64(b[40:])
	if size > MaxDisk {
		return unsupported("its disk has %d bytes, the limit is %d", size, int64(MaxDisk))
	}
	h.size, h.l1Entries = int64(size), int64(l1)
	perL1 := h.clusterSize() * (h.clusterSize() / 8)
	need := (h.size + perL1 - 1) / perL1
	switch {
	case h.size == 0:
		return corrupt("its disk has no bytes")
	case h.size%512 != 0:
		return corrupt("its disk has %d bytes, which are no whole sectors", h.size)
	case h.l1Entries < need:
		return corrupt("its L1 table has %d entries, the disk needs %d", h.l1Entries, need)
	case h.l1Entries*8 > maxL1Bytes:
		return unsupported("its L1 table has %d entries, the limit is %d", h.l1Entries, maxL1Bytes/8)
	case off == 0 || off%uint64(h.clusterSize()) != 0:
		return corrupt("its L1 table begins at %d, within a cluster", off)
	case off > uint64(fileSize) || int64(off)+need*8 > fileSize:
		return truncated("its L1 table ends at %d, the file at %d", off+uint64(need)*8, fileSize)
	}
	h.l1Entries, h.l1Offset = need, int64(off)
	return nil
}

func (h *header) clusterSize() int64 { return 1 << h.clusterBits }

// features judges the incompatible features of version 3.
func (h *header) features(b []byte) error {
	be := binary.BigEndian
	bits, length := be.Uint64(b[72:]), be.Uint32(b[100:])
	if length < 104 || length%8 != 0 || int64(length) > min(int64(len(b)), h.clusterSize()) {
		return corrupt("its header has %d bytes", length)
	}
	compression := byte(0)
	if length > 104 {
		compression = b[104]
	}
	switch {
	case bits&featureDirty != 0:
		return unsupported("it was not closed cleanly (repair it: qemu-img check -r all FILE)")
	case bits&featureCorrupt != 0:
		return unsupported("it is marked as corrupt (repair it: qemu-img check -r all FILE)")
	case bits&featureDataFile != 0:
		return unsupported("its data is in an external data file (convert it: qemu-img convert -O qcow2 IN OUT)")
	case bits&featureExtendedL2 != 0:
		return unsupported("it has extended L2 entries (convert it: qemu-img convert -O qcow2 -o extended_l2=off IN OUT)")
	case bits&^featureCompression != 0:
		return unsupported("it needs the incompatible features %s (convert it: qemu-img convert -O qcow2 IN OUT)", featureNames(bits&^featureCompression, b[length:]))
	case (bits&featureCompression != 0) != (compression != 0):
		return corrupt("compression type %d does not go with its features", compression)
	case compression > 1:
		return unsupported("its compression type is %d, known are 0 (zlib) and 1 (zstd)", compression)
	}
	h.zstd = compression == 1
	return nil
}

// featureNames names unknown features, as the file itself does in its feature name
// table (a header extension), else by their number.
func featureNames(bits uint64, ext []byte) string {
	const nameTable, entry = 0x6803f857, 48
	names := map[uint]string{}
	for len(ext) >= 8 {
		kind, n := binary.BigEndian.Uint32(ext), binary.BigEndian.Uint32(ext[4:])
		ext = ext[8:]
		if kind == 0 || int64(n) > int64(len(ext)) {
			break
		}
		for e := ext[:n]; kind == nameTable && len(e) >= entry; e = e[entry:] {
			if e[0] == 0 && e[1] < 64 { // 0 is incompatible
				names[uint(e[1])] = strings.TrimRight(string(e[2:entry]), "\x00")
			}
		}
		ext = ext[min(len(ext), int(n+7)&^7):]
	}
	var out []string
	for i := range uint(64) {
		if bits&(1<<i) == 0 {
			continue
		}
		s := fmt.Sprintf("bit %d", i)
		if names[i] != "" {
			s = fmt.Sprintf("%q (bit %d)", names[i], i)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// backingName is the name in the header, as far as it can be read.
func backingName(b []byte, off uint64, n uint32) string {
	if n == 0 || n > 1023 || off > uint64(len(b)) || off+uint64(n) > uint64(len(b)) {
		return ""
	}
	return fmt.Sprintf(" (%.200q)", b[off:off+uint64(n)])
}

// short says why a read gave less than was asked for.
func short(err error, what string) error {
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		return truncated("it ends in %s", what)
	}
	return fmt.Errorf("read %s: %w", what, err)
}
