package codec

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest dictionary, in bytes, that a zstd or xz image may
// ask for: zstd's own limit without --long, and twice what xz -9 uses.
const MaxWindow = 128 << 20

// bufferSize of the readers for decoders that are fastest on a bufio.Reader.
const bufferSize = 64 << 10

// decoder is what newDecoder returns. Its Read returns io.EOF when the source
// ends after a complete member; all of them decode concatenated members.
type decoder = io.ReadCloser

// newDecoder reads the first header of the compressed stream in src.
func newDecoder(f Format, src *source) (decoder, error) {
	switch f {
	case Raw:
		return io.NopCloser(src), nil
	case Gzip:
		z, err := gzip.NewReader(bufio.NewReaderSize(src, bufferSize))
		if err != nil {
			return nil, err
		}
		return z, nil
	case Bzip2:
		return io.NopCloser(bzip2.NewReader(bufio.NewReaderSize(src, bufferSize))), nil
	case Xz:
		return io.NopCloser(newXzReader(src)), nil
	case Zstd:
		// One decoder without goroutines of its own: a panic in one of those
		// would pass by decoderReader. Reading, hashing and writing overlap
		// with it already.
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(MaxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, formatError("no decoder for %q", f)
}

// minSize says how much comes out at least.
func minSize(f Format, head []byte, size int64) int64 {
	switch f {
	case Raw:
		return max(size, 0)
	case Zstd:
		var h zstd.Header
		if h.Decode(head) == nil && h.HasFCS && h.FrameContentSize < 1<<62 {
			return int64(h.FrameContentSize)
		}
	}
	return 0
}

// decoderReader guards against the decoders, which are not ours and read what
// the network sends: a panic in one of them would take the machine down with
// the worker, and is reported as a corrupt image instead.
type decoderReader struct {
	decoder
	format Format
}

func (d decoderReader) Read(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, corrupt("decoder: %v", r)
		}
	}()
	n, err = d.decoder.Read(p)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		err = fmt.Errorf("%w: its zstd window is larger than %d MiB (compress it again without --long, or with --long=27)",
			ErrLimit, MaxWindow>>20)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch):
		// The first header was read by then: this is what follows a member.
		err = trailing(d.format)
	}
	return n, err
}
