package qcow2

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The bits of table entries.
const (
	offsetMask    = 0x00fffffffffffe00 // bits 9 to 55
	copiedBit     = 1 << 63
	compressedBit = 1 << 62
	zeroBit       = 1 // version 3
	l1Reserved    = ^uint64(offsetMask | copiedBit)
	l2Reserved    = ^uint64(offsetMask | copiedBit | compressedBit | zeroBit)
)

// maxZeros is when a run of zeros is handed out, so that the caller can stop.
const maxZeros = 1 << 30

// Reader yields the bytes of the disk, from the first to the last. It is not for
// concurrent use.
type Reader struct {
	r        io.ReaderAt
	fileSize int64
	h        header

	at      int64  // of the disk
	l2      []byte // the L2 table of the L1 entry l2Of
	l2Of    int64  // -1: none
	cluster []byte
	packed  []byte
	inflate io.ReadCloser
	zstd    *zstd.Decoder
}

// NewReader reads the header of a file of that many bytes: ErrUnsupported,
// ErrCorrupt, ErrTruncated, or the error of r.
func NewReader(r io.ReaderAt, fileSize int64) (*Reader, error) {
	h, err := readHeader(r, fileSize)
	if err != nil {
		return nil, err
	}
	return &Reader{r: r, fileSize: fileSize, h: h, l2Of: -1}, nil
}

// Size of the disk, in bytes.
func (q *Reader) Size() int64 { return q.h.size }

// Pos is how far the disk was read, in bytes.
func (q *Reader) Pos() int64 { return q.at }

// Close releases what decompression took.
func (q *Reader) Close() {
	if q.zstd != nil {
		q.zstd.Close()
		q.zstd = nil
	}
}

// Next is the next part of the disk: either data, good until the next call, or a
// number of zeros where data is nil. It is io.EOF after the last byte.
func (q *Reader) Next() (data []byte, zeros int64, err error) {
	for q.at < q.h.size && zeros < maxZeros {
		e, span, err := q.entry()
		if err != nil {
			return nil, 0, err
		}
		n := min(span, q.h.size-q.at)
		if e != 0 {
			if zeros > 0 {
				return nil, zeros, nil // this one's turn comes next
			}
			data, err := q.read(e, n)
			if err != nil {
				return nil, 0, fmt.Errorf("cluster at byte %d: %w", q.at, err)
			}
			q.at += n
			return data, 0, nil
		}
		q.at += n
		zeros += n
	}
	if zeros > 0 {
		return nil, zeros, nil
	}
	return nil, 0, io.EOF
}

// entry is the L2 entry of where we are, and how many bytes it is about; 0 is zeros.
func (q *Reader) entry() (e uint64, span int64, err error) {
	size := q.h.clusterSize()
	perL1 := size * (size / 8)
	i := q.at / perL1
	if i != q.l2Of {
		zero, err := q.loadL2(i)
		if err != nil {
			return 0, 0, err
		}
		if zero {
			return 0, perL1 - q.at%perL1, nil
		}
	}
	e = binary.BigEndian.Uint64(q.l2[q.at%perL1/size*8:])
	switch {
	case e&compressedBit != 0:
		if e&copiedBit != 0 {
			return 0, 0, corrupt("L2 entry %#x is of a compressed cluster that is not shared", e)
		}
		return e, size, nil
	case e&l2Reserved != 0, q.h.version == 2 && e&zeroBit != 0:
		return 0, 0, corrupt("L2 entry %#x has reserved bits", e)
	case e&zeroBit != 0, e&offsetMask == 0:
		return 0, size, nil
	}
	return e, size, nil
}

// loadL2 reads the L2 table of an L1 entry; true where there is none.
func (q *Reader) loadL2(i int64) (zero bool, err error) {
	var b [8]byte
	if n, err := q.r.ReadAt(b[:], q.h.l1Offset+i*8); n < len(b) {
		return false, short(err, "its L1 table")
	}
	e := binary.BigEndian.Uint64(b[:])
	off := int64(e & offsetMask)
	switch {
	case e&l1Reserved != 0:
		return false, corrupt("L1 entry %d is %#x, which has reserved bits", i, e)
	case off == 0:
		return true, nil
	case off%q.h.clusterSize() != 0:
		return false, corrupt("L2 table %d begins at %d, within a cluster", i, off)
	}
	if q.l2 == nil {
		q.l2 = make([]byte, q.h.clusterSize())
	}
	q.l2Of = -1
	if err := q.fill(q.l2, off, fmt.Sprintf("L2 table %d", i)); err != nil {
		return false, err
	}
	q.l2Of = i
	return false, nil
}

// fill reads all of b.
func (q *Reader) fill(b []byte, off int64, what string) error {
	if off > q.fileSize-int64(len(b)) {
		return truncated("%s ends at byte %d, the file at %d", what, off+int64(len(b)), q.fileSize)
	}
	if n, err := q.r.ReadAt(b, off); n < len(b) {
		return short(err, what)
	}
	return nil
}

// read is n bytes of the cluster of an entry.
func (q *Reader) read(e uint64, n int64) ([]byte, error) {
	if q.cluster == nil {
		q.cluster = make([]byte, q.h.clusterSize())
	}
	if e&compressedBit != 0 {
		return q.cluster[:n], q.unpack(e)
	}
	off := int64(e & offsetMask)
	if off%q.h.clusterSize() != 0 {
		return nil, corrupt("it begins at %d, within a cluster of the file", off)
	}
	// The last cluster of a disk need not be whole in the file.
	return q.cluster[:n], q.fill(q.cluster[:n], off, "the cluster")
}

// unpack decompresses a cluster. It is in the file from any byte on, and its entry
// says how many further sectors it touches.
func (q *Reader) unpack(e uint64) error {
	bits := 62 - (q.h.clusterBits - 8)
	off := int64(e & (1<<bits - 1))
	sectors := int64(e &^ (copiedBit | compressedBit) >> bits)
	length := min((sectors+1)*512-off%512, q.fileSize-off) // the last sector of a file need not be whole
	if length <= 0 {
		return truncated("it begins at byte %d, the file ends at %d", off, q.fileSize)
	}
	if q.packed == nil {
		q.packed = make([]byte, 2*q.h.clusterSize()+512) // the entry has no more bits
	}
	packed := q.packed[:length]
	if err := q.fill(packed, off, "the compressed cluster"); err != nil {
		return err
	}
	if err := q.decode(packed); err != nil {
		return corrupt("%d compressed bytes at %d: %v", length, off, err)
	}
	return nil
}

// decode fills the cluster. The decoders are not ours and read what came over the
// network: a panic in one of them is a corrupt image and not the end of the daemon.
func (q *Reader) decode(packed []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder: %v", r)
		}
	}()
	r, err := q.decoder(packed)
	if err == nil {
		_, err = io.ReadFull(r, q.cluster)
	}
	return err
}

// decoder is qemu's counterpart: deflate without a header, or one zstd frame. What
// follows in the last sector is not ours.
func (q *Reader) decoder(packed []byte) (io.Reader, error) {
	if !q.h.zstd {
		if q.inflate == nil {
			q.inflate = flate.NewReader(bytes.NewReader(packed))
			return q.inflate, nil
		}
		return q.inflate, q.inflate.(flate.Resetter).Reset(bytes.NewReader(packed), nil)
	}
	if q.zstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		q.zstd = z
	}
	return q.zstd, q.zstd.Reset(bytes.NewReader(packed))
}
