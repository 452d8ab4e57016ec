package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/maphash"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzBlockHeader is what matters of a block header (section 3.1).
type xzBlockHeader struct {
	size         int64 // of the header itself
	compressed   int64 // -1 when absent
	uncompressed int64 // -1 when absent
	dictionary   int   // bytes to allocate
}

// parseXzBlockHeader reads a whole block header, from its size byte to its CRC.
func parseXzBlockHeader(raw []byte) (xzBlockHeader, error) {
	h := xzBlockHeader{compressed: -1, uncompressed: -1}
	body, sum := raw[:len(raw)-4], raw[len(raw)-4:]
	if crc32.ChecksumIEEE(body) != le32(sum) {
		return h, errors.New("block header: wrong CRC")
	}
	flags, body := body[1], body[2:]
	if flags&0x3c != 0 {
		return h, errors.New("block header: reserved flags")
	}
	if flags&0x03 != 0 {
		return h, fmt.Errorf("%w: it is compressed with an xz filter for programs (compress it again with xz -6, or better with zstd)", ErrFormat)
	}
	var err error
	if flags&0x40 != 0 {
		if h.compressed, body, err = xzVarint(body); err != nil {
			return h, err
		}
	}
	if flags&0x80 != 0 {
		if h.uncompressed, body, err = xzVarint(body); err != nil {
			return h, err
		}
	}
	// One filter: LZMA2, id 0x21, one byte of properties (section 5.3.1).
	if len(body) < 3 || body[0] != 0x21 || body[1] != 1 {
		return h, errors.New("block header: its filter is not LZMA2")
	}
	dictionary, err := xzDictionary(body[2])
	if err != nil {
		return h, err
	}
	h.dictionary = dictionary
	for _, b := range body[3:] {
		if b != 0 {
			return h, errors.New("block header: padding is not zero")
		}
	}
	return h, nil
}

// xzDictionary decodes the dictionary size of LZMA2: 2 or 3 times a power of two.
func xzDictionary(b byte) (int, error) {
	if b > 40 {
		return 0, errors.New("block header: impossible dictionary size")
	}
	size := uint64(2|b&1) << (b/2 + 11)
	if size > MaxWindow {
		return 0, fmt.Errorf("%w: its xz dictionary of %d MiB is larger than %d MiB (compress it again with xz -9 or less, or with zstd)",
			ErrLimit, size>>20, MaxWindow>>20)
	}
	return max(int(size), lzma.MinDictCap), nil
}

// xzRecords sums up block records in constant memory, as the index must match
// the blocks (section 4.3). The hash is seeded, so nobody can aim at it.
type xzRecords struct {
	count uint64
	sum   *maphash.Hash
}

func (r *xzRecords) add(unpadded, uncompressed int64) {
	if r.sum == nil {
		r.sum = &maphash.Hash{}
	}
	r.count++
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(unpadded))
	binary.LittleEndian.PutUint64(b[8:], uint64(uncompressed))
	r.sum.Write(b[:])
}

// readXzIndex reads the index, whose first byte was read, and the stream
// footer, and compares them with the blocks that were seen.
func readXzIndex(in *countingByteReader, seen *xzRecords, flags [2]byte) error {
	start := in.n - 1
	crc := crc32.NewIEEE()
	crc.Write([]byte{0})
	r := &hashingByteReader{in, crc}
	count, err := binary.ReadUvarint(r)
	if err != nil {
		return noEOF(err)
	}
	if count != seen.count {
		return fmt.Errorf("index has %d blocks, the stream %d", count, seen.count)
	}
	listed := xzRecords{}
	if seen.sum != nil {
		listed.sum = &maphash.Hash{}
		listed.sum.SetSeed(seen.sum.Seed())
	}
	for range count {
		unpadded, err := binary.ReadUvarint(r)
		if err != nil {
			return noEOF(err)
		}
		uncompressed, err := binary.ReadUvarint(r)
		if err != nil {
			return noEOF(err)
		}
		listed.add(int64(unpadded), int64(uncompressed))
	}
	if seen.sum != nil && listed.sum.Sum64() != seen.sum.Sum64() {
		return errors.New("index differs from the blocks")
	}
	for (in.n-start)%4 != 0 {
		if b, err := r.ReadByte(); err != nil {
			return noEOF(err)
		} else if b != 0 {
			return errors.New("index: padding is not zero")
		}
	}
	var sum [4]byte
	if err := readFull(in, sum[:]); err != nil {
		return err
	}
	if le32(sum[:]) != crc.Sum32() {
		return errors.New("index: wrong CRC")
	}
	return readXzFooter(in, in.n-start, flags)
}

// readXzFooter reads the stream footer (section 2.1.2).
func readXzFooter(in io.Reader, indexSize int64, flags [2]byte) error {
	var f [12]byte
	if err := readFull(in, f[:]); err != nil {
		return err
	}
	switch {
	case string(f[10:]) != xzFooterMagic:
		return errors.New("stream footer: wrong magic")
	case crc32.ChecksumIEEE(f[4:10]) != le32(f[:]):
		return errors.New("stream footer: wrong CRC")
	case (int64(le32(f[4:]))+1)*4 != indexSize:
		return errors.New("stream footer: wrong index size")
	case [2]byte(f[8:10]) != flags:
		return errors.New("stream footer: flags differ from the header")
	}
	return nil
}

// xzVarint reads a multibyte integer of at most 63 bits (section 1.2).
func xzVarint(b []byte) (int64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<63-1 {
		return 0, nil, errors.New("block header: bad integer")
	}
	return int64(v), b[n:], nil
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// readFull is io.ReadFull for places where the stream cannot end.
func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	return noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// countingByteReader knows its position in the source.
type countingByteReader struct {
	r *source
	n int64
}

func (c *countingByteReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *countingByteReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// hashingByteReader feeds what is read to a hash.
type hashingByteReader struct {
	r io.ByteReader
	h hash.Hash
}

func (c *hashingByteReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.h.Write([]byte{b})
	}
	return b, err
}
