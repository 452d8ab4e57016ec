package codec

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// The container around LZMA2 is read here, after "The .xz File Format" 1.2.1,
// because the library's own reader allocates whatever dictionary a header asks
// for, up to 4 GiB, and keeps one record per block.

const (
	xzMagic       = "\xfd7zXZ\x00"
	xzFooterMagic = "YZ"
)

// xzReader decodes one or more streams with padding between them.
type xzReader struct {
	in     *countingByteReader
	stream *xzStream // nil between streams
	first  bool      // no stream has ended yet
}

// xzStream is the state of one stream (section 2.1).
type xzStream struct {
	flags [2]byte
	seen  xzRecords // of the blocks that were decoded
	block *xzBlock  // nil between blocks
}

// xzBlock is the state of one block (section 3).
type xzBlock struct {
	header     xzBlockHeader
	start      int64 // position in the source of the compressed data
	data       io.Reader
	check      hash.Hash // nil for none
	uncompress int64
}

// newXzReader reads from src, whose magic was recognised. Errors come from Read.
func newXzReader(src *source) *xzReader {
	return &xzReader{in: &countingByteReader{r: src}, first: true}
}

// Read implements [io.Reader].
func (x *xzReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if x.stream == nil {
			if err := x.openStream(); err != nil {
				return 0, err
			}
		}
		if x.stream.block == nil {
			if err := x.openBlock(); err != nil {
				return 0, err
			}
			continue // x.stream is nil when the index came instead
		}
		n, err := x.stream.block.read(p)
		if err == io.EOF {
			err = x.closeBlock()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// openStream reads the stream header, after the padding of the stream before
// (sections 2.1.1 and 2.2). io.EOF is the end of the file.
func (x *xzReader) openStream() error {
	var h [12]byte
	for {
		if _, err := io.ReadFull(x.in, h[:4]); err != nil {
			if err == io.EOF && x.first {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if x.first || h[0]|h[1]|h[2]|h[3] != 0 {
			break
		}
	}
	if !bytes.HasPrefix([]byte(xzMagic), h[:4]) {
		return trailing(Xz)
	}
	if err := readFull(x.in, h[4:]); err != nil {
		return err
	}
	if string(h[:6]) != xzMagic {
		return trailing(Xz)
	}
	if crc32.ChecksumIEEE(h[6:8]) != le32(h[8:]) {
		return errors.New("stream header: wrong CRC")
	}
	x.stream = &xzStream{flags: [2]byte(h[6:8])}
	if _, _, err := xzCheck(x.stream.flags); err != nil {
		return err
	}
	return nil
}

// openBlock reads a block header, or the index and the footer of the stream.
func (x *xzReader) openBlock() error {
	start := x.in.n
	size, err := x.in.ReadByte()
	if err != nil {
		return noEOF(err)
	}
	if size == 0 {
		if err := readXzIndex(x.in, &x.stream.seen, x.stream.flags); err != nil {
			return err
		}
		x.stream, x.first = nil, false
		return nil
	}
	raw := make([]byte, (int(size)+1)*4)
	raw[0] = size
	if err := readFull(x.in, raw[1:]); err != nil {
		return err
	}
	b := &xzBlock{}
	if b.header, err = parseXzBlockHeader(raw); err != nil {
		return err
	}
	b.check, _, _ = xzCheck(x.stream.flags)
	b.start = x.in.n
	if b.data, err = (lzma.Reader2Config{DictCap: b.header.dictionary}).NewReader2(x.in); err != nil {
		return noEOF(err)
	}
	b.header.size = b.start - start
	x.stream.block = b
	return nil
}

func (b *xzBlock) read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	b.uncompress += int64(n)
	if b.check != nil {
		b.check.Write(p[:n])
	}
	return n, err
}

// closeBlock reads what follows the compressed data: padding and check.
func (x *xzReader) closeBlock() error {
	b := x.stream.block
	compressed := x.in.n - b.start
	if want := b.header.compressed; want >= 0 && want != compressed {
		return errors.New("block: compressed size differs from its header")
	}
	if want := b.header.uncompressed; want >= 0 && want != b.uncompress {
		return errors.New("block: uncompressed size differs from its header")
	}
	var padding [3]byte
	pad := padding[:-compressed&3]
	if err := readFull(x.in, pad); err != nil {
		return err
	}
	if padding != [3]byte{} {
		return errors.New("block: padding is not zero")
	}
	_, size, _ := xzCheck(x.stream.flags)
	sum := make([]byte, size)
	if err := readFull(x.in, sum); err != nil {
		return err
	}
	if b.check != nil && !bytes.Equal(sum, littleEndianSum(b.check)) {
		return errors.New("block: wrong check value")
	}
	x.stream.seen.add(b.header.size+compressed+int64(size), b.uncompress)
	x.stream.block = nil
	return nil
}

// xzCheck returns a hash for the integrity check that the stream flags name
// and its size in bytes (section 2.1.1.2).
func xzCheck(flags [2]byte) (hash.Hash, int, error) {
	if flags[0] != 0 {
		return nil, 0, errors.New("stream flags are reserved ones")
	}
	switch flags[1] {
	case 0x00:
		return nil, 0, nil
	case 0x01:
		return crc32.NewIEEE(), 4, nil
	case 0x04:
		return crc64.New(crc64.MakeTable(crc64.ECMA)), 8, nil
	case 0x0a:
		return sha256.New(), 32, nil
	}
	return nil, 0, errors.New("integrity check of an unknown kind")
}

// littleEndianSum is the sum as xz stores it: CRCs the other way round than
// Go's Sum gives them.
func littleEndianSum(h hash.Hash) []byte {
	sum := h.Sum(nil)
	if len(sum) == sha256.Size {
		return sum
	}
	for i, j := 0, len(sum)-1; i < j; i, j = i+1, j-1 {
		sum[i], sum[j] = sum[j], sum[i]
	}
	return sum
}
