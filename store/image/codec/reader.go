package codec

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Options say what is known of an image before it is read.
type Options struct {
	// Format is [Auto] unless the operator named one.
	Format Format
	// Size is the exact length of the source in bytes (Content-Length); zero
	// or negative means unknown. An image is never empty.
	Size int64
	// Checksum of the source bytes; zero means unchecked.
	Checksum Checksum
	// AnyContent accepts decoded content that does not look like a disk, for
	// instance an image of one filesystem.
	AnyContent bool
}

// Reader yields the bytes of the disk. Read returns io.EOF only when all of
// the source was read and everything about it was right. Any other error is
// final. Not for concurrent use, except for SourceBytes.
type Reader struct {
	format  Format
	src     *source
	closer  io.Closer // may be nil
	dec     decoder
	out     *bufio.Reader // over dec; holds the head that was looked at
	err     error
	minSize int64
	closing sync.Once
}

// NewReader recognises the content of r and returns a Reader of the disk's
// bytes. It owns r from then on: when r is an [io.Closer], Close closes it, and
// so does NewReader when it fails. Errors wrap one of this package's, or are
// those of r.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	if o.Size <= 0 {
		o.Size = -1
	}
	d := &Reader{src: newSource(r, o.Size, o.Checksum)}
	d.closer, _ = r.(io.Closer)
	if err := d.start(o); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// start chooses the decoder and looks at the first decoded bytes.
func (d *Reader) start(o Options) error {
	head := d.src.head()
	if s := d.src.err; len(head) < SniffLen && s != nil && s != io.EOF && !errors.Is(s, ErrChecksum) {
		d.src.rest = nil
		return d.explain(s)
	}
	var err error
	switch found := sniffCompressed(head); {
	case o.Format == Auto && found != Auto:
		d.format = found
	case o.Format == Auto:
		d.format = Raw
		if !o.AnyContent {
			err = checkDisk(head)
		} else if len(head) == 0 {
			err = formatError("the source is empty (check the URL)")
		}
	case o.Format == Raw && len(head) == 0:
		err = formatError("the source is empty (check the URL)")
	case o.Format != Raw && found != o.Format:
		err = wrongFormat(o.Format, found, head)
	default:
		d.format = o.Format
	}
	if err != nil {
		return err
	}
	if d.dec, err = newDecoder(d.format, d.src); err != nil {
		return d.explain(err)
	}
	d.minSize = minSize(d.format, head, o.Size)
	if d.format == Raw {
		return nil
	}
	d.out = bufio.NewReaderSize(decoderReader{d.dec, d.format}, SniffLen)
	decoded, err := d.out.Peek(SniffLen)
	if err != nil && err != io.EOF {
		return d.explain(err)
	}
	if o.AnyContent {
		return nil
	}
	if sniffCompressed(decoded) != Auto {
		return formatError("inside %s is %s again (%s)", d.format, sniffCompressed(decoded), twice)
	}
	if err := checkDisk(decoded); err != nil {
		return fmt.Errorf("inside %s: %w", d.format, err)
	}
	return nil
}

func wrongFormat(want, found Format, head []byte) error {
	if found != Auto {
		return formatError("format: %s was asked for, it is %s (set format: auto)", want, found)
	}
	if err := checkDisk(head); err != nil {
		return err
	}
	return formatError("format: %s was asked for, it is not compressed (set format: auto)", want)
}

// Format is the recognised format of the source.
func (d *Reader) Format() Format { return d.format }

// SourceBytes is how many bytes of the source were read so far, including what
// was read ahead. It may be called at any time from any goroutine.
func (d *Reader) SourceBytes() int64 { return d.src.fetched.Load() }

// Strong is the checksum to trust the source by from now on: its SHA-256 where it was
// compared with a weak one, else the one that it was compared with. It is known when
// Read has returned io.EOF.
func (d *Reader) Strong() Checksum {
	if d.src.sha256 == nil {
		return d.src.checksum
	}
	return Checksum{Algorithm: "sha256", Digest: d.src.sha256.Sum(nil)}
}

// Read implements [io.Reader].
func (d *Reader) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	var n int
	var err error
	switch {
	case d.format == Raw:
		n, err = d.src.Read(p)
	case d.out.Buffered() > 0:
		n, err = d.out.Read(p)
	default:
		n, err = decoderReader{d.dec, d.format}.Read(p)
	}
	if err == io.EOF {
		err = d.finish()
	}
	if err != nil {
		d.err = d.explain(err)
		return n, d.err
	}
	return n, nil
}

// finish reads the source to its end after the decoder reached its own.
func (d *Reader) finish() error {
	if err := d.src.next(); err != nil {
		return err // io.EOF when the source is verified
	}
	return trailing(d.format)
}

// explain gives an error of a decoder one of this package's sentinels. What
// ended the source comes first: it is the cause of what the decoder says.
func (d *Reader) explain(err error) error {
	if err == io.EOF || isOurs(err) {
		return err
	}
	if s := d.src.err; s != nil && s != io.EOF && len(d.src.rest) == 0 {
		if isOurs(s) {
			return s
		}
		return fmt.Errorf("read image source: %w", s)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated("the %s stream ends in the middle, after %d source bytes", d.format, d.SourceBytes())
	}
	return corrupt("%s: %v", d.format, err)
}

// Close stops reading and releases everything. It closes the source first
// where that is an [io.Closer]; otherwise it waits for a Read in progress.
// The error is that of closing the source.
func (d *Reader) Close() error {
	var err error
	d.closing.Do(func() {
		if d.closer != nil {
			err = d.closer.Close()
		}
		d.src.close()
		if d.dec != nil {
			d.dec.Close()
		}
		if d.err == nil {
			d.err = errors.New("image reader is closed")
		}
	})
	return err
}

// MinSize is how many bytes the disk image has at least, as far as that is
// known before reading: the size of a raw source, or what a zstd header says.
func (d *Reader) MinSize() int64 { return d.minSize }
