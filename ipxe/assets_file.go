package ipxe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// part is one run of bytes of an asset.
type part struct {
	io.ReaderAt
	io.Closer
	size int64
	id   string // changes whenever the content does
	// modified is when an operator's file was changed last.
	modified time.Time
}

// partAlign is the alignment of initramfs parts. The kernel takes a plain cpio
// archive only at a multiple of four bytes and skips zeros before it
// (init/initramfs.c, unpack_to_rootfs).
const partAlign = 4

// Asset is an open boot file. It is an [fs.File], an [io.ReadSeekCloser] and an
// [io.ReaderAt]. Reading at offsets is safe for concurrent use, Read and Seek
// are not.
type Asset struct {
	*io.SectionReader
	owner *Assets
	name  string
	parts []part
}

var (
	_ fs.File           = (*Asset)(nil)
	_ io.ReadSeekCloser = (*Asset)(nil)
)

func newAsset(owner *Assets, name string, parts []part) *Asset {
	m := multiReaderAt{parts: parts}
	return &Asset{SectionReader: io.NewSectionReader(m, 0, m.size()), owner: owner, name: name, parts: parts}
}

// Close releases the files behind the asset and returns what they return.
func (f *Asset) Close() error { return closeParts(f.parts) }

// Stat describes the asset. It returns no error.
func (f *Asset) Stat() (fs.FileInfo, error) {
	return assetInfo{name: f.name, size: f.Size()}, nil
}

// SHA256 returns the checksum of the whole asset in hexadecimal. The first
// call for a content reads it all; later ones, also by other openers, do not.
// It returns the error of reading a drop-in file.
func (f *Asset) SHA256() (string, error) {
	ids := make([]string, len(f.parts))
	for i, p := range f.parts {
		ids[i] = p.id
	}
	key := strings.Join(ids, "\x00")
	f.owner.mu.Lock()
	sum, ok := f.owner.sums[key]
	f.owner.mu.Unlock()
	if ok {
		return sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(multiReaderAt{f.parts}, 0, f.Size())); err != nil {
		return "", fmt.Errorf("checksum of %s: %w", f.name, err)
	}
	sum = hex.EncodeToString(h.Sum(nil))
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	if len(f.owner.sums) >= maxSums {
		clear(f.owner.sums)
	}
	f.owner.sums[key] = sum
	return sum, nil
}

// maxSums bounds the memory for checksums of files that come and go.
const maxSums = 256

func closeParts(parts []part) error {
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// multiReaderAt reads parts one after the other, each but the last followed by
// zeros up to partAlign.
type multiReaderAt struct{ parts []part }

func (m multiReaderAt) size() (n int64) {
	for i, p := range m.parts {
		n += m.padded(i, p)
	}
	return n
}

func (m multiReaderAt) padded(i int, p part) int64 {
	if i == len(m.parts)-1 {
		return p.size
	}
	return (p.size + partAlign - 1) / partAlign * partAlign
}

// ReadAt implements [io.ReaderAt]. A file that became shorter since it was
// opened gives io.ErrUnexpectedEOF.
func (m multiReaderAt) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	for i, p := range m.parts {
		padded := m.padded(i, p)
		if off >= padded {
			off -= padded
			continue
		}
		chunk := b[n:]
		if int64(len(chunk)) > padded-off {
			chunk = chunk[:padded-off]
		}
		if err := readPart(p, chunk, off); err != nil {
			return n, err
		}
		n += len(chunk)
		off = 0
		if n == len(b) {
			return n, nil
		}
	}
	return n, io.EOF
}

// readPart fills b from p at off, with zeros beyond its end.
func readPart(p part, b []byte, off int64) error {
	data := b
	if rest := max(p.size-off, 0); int64(len(data)) > rest {
		data = data[:rest]
	}
	clear(b[len(data):])
	if len(data) == 0 {
		return nil
	}
	n, err := p.ReadAt(data, off)
	if n == len(data) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

type assetInfo struct {
	name string
	size int64
}

func (i assetInfo) Name() string      { return i.name }
func (i assetInfo) Size() int64       { return i.size }
func (i assetInfo) Mode() fs.FileMode { return 0o444 }
func (i assetInfo) IsDir() bool       { return false }
func (i assetInfo) Sys() any          { return nil }

// ModTime is always zero, which net/http takes as "send no Last-Modified": the
// content, not a date, tells two versions apart (see [Asset.SHA256]).
func (i assetInfo) ModTime() time.Time { return time.Time{} }
