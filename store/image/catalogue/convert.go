package catalogue

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/codec"
	"github.com/rackstrap/rackstrap/store/image/qcow2"
	"github.com/rackstrap/rackstrap/workflow"
)

// formatQcow2 is the one format that workers do not read.
const formatQcow2 = "qcow2"

// converted is what became of a source.
type converted struct {
	format    string // of the source
	rendition workflow.ImageFile
	disk      int64
}

// convert reads the whole source, so that one that is broken is known before a disk
// is wiped for it. What workers unpack fast (zstd, gzip) stays as it is; qcow2, xz
// and bzip2, which they do not, and raw disks become zstd. A source whose format is
// raw by the operator's word is not looked at.
func convert(ctx context.Context, files *image.Store, src workflow.ImageFile, format string, progress func(done, total int64)) (converted, error) {
	f, err := files.Open(ctx, src.Digest)
	if err != nil {
		return converted{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return converted{}, err
	}
	src.Bytes = st.Size()
	d, kind, err := open(f, src.Bytes, format)
	if err != nil {
		return converted{}, err
	}
	if d != nil {
		defer d.Close()
	}
	asItIs := func(disk int64) converted {
		src.Format = kind
		return converted{format: kind, rendition: src, disk: disk}
	}
	c := &copier{ctx: ctx, files: files, progress: progress, total: src.Bytes}
	switch {
	case format == "raw":
		return asItIs(src.Bytes), nil
	case kind == formatQcow2 && d == nil:
		return c.fromQcow2(f, src.Bytes, kind)
	case kind == formatQcow2:
		return c.unpackQcow2(d)
	case kind == string(codec.Zstd), kind == string(codec.Gzip):
		n, err := c.through(io.Discard, d)
		return asItIs(n), err
	}
	return c.toZstd(kind, func(p *packer) error {
		_, err := c.through(p, d)
		return err
	})
}

// inspect says what is wrong with a source as far as its first bytes tell.
func inspect(ctx context.Context, files *image.Store, blob image.Blob, format string) error {
	f, err := files.Open(ctx, blob.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	d, _, err := open(f, blob.Bytes, format)
	if d != nil {
		_ = d.Close()
	}
	return err
}

// disk is a decoded source that was looked into.
type disk struct {
	*bufio.Reader
	dec *codec.Reader
}

func (d *disk) Close() error { return d.dec.Close() }

// open recognises a source. The disk is nil for raw as it is, and for qcow2 that is
// not packed; the kind of a packed qcow2 is qcow2 too.
func open(f *os.File, size int64, format string) (*disk, string, error) {
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	switch isQcow2 := string(head[:n]) == qcow2.Magic; {
	case n == 0:
		return nil, "", errors.New("the file is empty")
	case format == "raw":
		return nil, format, nil
	case isQcow2 && (format == "" || format == "auto" || format == formatQcow2):
		return nil, formatQcow2, lookQcow2(f, size)
	}
	want := codec.Auto
	if format != formatQcow2 {
		if want, err = codec.ParseFormat(format); err != nil {
			return nil, "", err
		}
	}
	dec, err := codec.NewReader(io.NewSectionReader(f, 0, size), codec.Options{Format: want, Size: size, AnyContent: true})
	if err != nil {
		return nil, "", err
	}
	d := &disk{bufio.NewReaderSize(dec, 1<<20), dec}
	kind, err := d.look(format)
	if err != nil {
		return nil, "", errors.Join(err, d.Close())
	}
	return d, kind, nil
}

// look judges the first decoded bytes.
func (d *disk) look(format string) (string, error) {
	kind := string(d.dec.Format())
	head, err := d.Peek(codec.SniffLen)
	if err != nil && err != io.EOF {
		return "", err
	}
	if bytes.HasPrefix(head, []byte(qcow2.Magic)) {
		return formatQcow2, nil
	}
	if format == formatQcow2 {
		return "", fmt.Errorf("format: qcow2 was asked for, it is none (leave the format out)")
	}
	inside := ""
	if kind != string(codec.Raw) {
		inside = "inside " + kind + ": "
	}
	found, err := codec.Sniff(head)
	if err == nil && found != codec.Raw {
		err = fmt.Errorf("it is %s again (decompress it once)", found)
	}
	if err != nil {
		return "", fmt.Errorf("%s%w", inside, err)
	}
	return kind, nil
}

// copier moves bytes in constant memory.
type copier struct {
	ctx      context.Context
	files    *image.Store
	progress func(done, total int64)
	total    int64 // of the source
}

// through copies a decoded source to its end.
func (c *copier) through(w io.Writer, d *disk) (int64, error) {
	buf := make([]byte, 1<<20)
	for n := int64(0); ; {
		k, err := d.Read(buf)
		n += int64(k)
		if werr := c.ctx.Err(); werr != nil {
			return n, werr
		}
		if n > qcow2.MaxDisk {
			return n, fmt.Errorf("its disk has more than %d bytes", int64(qcow2.MaxDisk))
		}
		if _, werr := w.Write(buf[:k]); werr != nil {
			return n, werr
		}
		c.progress(d.dec.SourceBytes(), c.total)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// toZstd makes a rendition of what fill writes.
func (c *copier) toZstd(kind string, fill func(*packer) error) (converted, error) {
	u, err := c.files.Create(c.ctx, "")
	if err != nil {
		return converted{}, err
	}
	defer u.Close()
	p, err := newPacker(u)
	if err != nil {
		return converted{}, err
	}
	if err := fill(p); err != nil {
		_ = p.enc.Close() // ends its goroutines
		return converted{}, err
	}
	if err := p.Close(); err != nil {
		return converted{}, err
	}
	b, err := u.Keep()
	if err != nil {
		return converted{}, err
	}
	return converted{kind, workflow.ImageFile{Format: string(codec.Zstd), Digest: b.Digest, Bytes: b.Bytes}, p.n}, nil
}

// unpackQcow2 is for a qcow2 in gzip or xz: its tables may be anywhere, so that it
// needs a file of its own for a while.
func (c *copier) unpackQcow2(d *disk) (converted, error) {
	u, err := c.files.Create(c.ctx, "")
	if err != nil {
		return converted{}, err
	}
	defer u.Close()
	n, err := c.through(u, d)
	if err != nil {
		return converted{}, err
	}
	return c.fromQcow2(u, n, string(d.dec.Format()))
}

// lookQcow2 judges a qcow2's header and the first bytes of its disk.
func lookQcow2(r io.ReaderAt, size int64) error {
	q, err := qcow2.NewReader(r, size)
	if err != nil {
		return err
	}
	defer q.Close()
	var head []byte
	for len(head) < codec.SniffLen {
		data, zeros, err := q.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		head = append(append(head, data...), make([]byte, min(zeros, codec.SniffLen))...)
	}
	found, err := codec.Sniff(head[:min(len(head), codec.SniffLen)])
	if err == nil && found != codec.Raw {
		err = fmt.Errorf("it is %s (decompress it)", found)
	}
	if err != nil {
		return fmt.Errorf("inside qcow2: %w", err)
	}
	return nil
}

func (c *copier) fromQcow2(r io.ReaderAt, size int64, kind string) (converted, error) {
	if err := lookQcow2(r, size); err != nil {
		return converted{}, err
	}
	q, err := qcow2.NewReader(r, size)
	if err != nil {
		return converted{}, err
	}
	defer q.Close()
	return c.toZstd(kind, func(p *packer) error {
		for {
			data, zeros, err := q.Next()
			if err == io.EOF {
				return nil
			}
			if err == nil {
				err = c.ctx.Err()
			}
			if err != nil {
				return err
			}
			if data == nil {
				p.Zero(zeros)
			} else if _, err := p.Write(data); err != nil {
				return err
			}
			c.progress(q.Pos(), q.Size())
		}
	})
}
