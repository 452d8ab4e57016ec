package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func diskFile(i int) string { return fmt.Sprintf("disk%d.raw", i) }

// makeDisk writes the sparse raw file of a disk. Raw files can be read by a test
// as they are, and lose nothing in a power cut.
func makeDisk(ctx context.Context, path string, d DiskSpec) error {
	if d.From != "" {
		if err := run(ctx, "cp", "--sparse=always", "--reflink=auto", "--", d.From, path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if d.Size != 0 && d.Size < size {
		return fmt.Errorf("%s has %d bytes, the disk only %d (make the disk larger)", d.From, size, d.Size)
	}
	if d.Size > size {
		err = f.Truncate(d.Size)
	} else if size%512 != 0 {
		err = f.Truncate(size + 512 - size%512)
	}
	return err
}

// Zero reads a file from its beginning to its end and returns an error that says
// where the first byte is that is not zero. Holes read zero and are skipped.
func Zero(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf, none := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); ; {
		at, err = f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // nothing but a hole up to the end
		}
		if err != nil {
			return err
		}
		end, err := f.Seek(at, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		for at < end {
			b := buf[:min(int64(len(buf)), end-at)]
			if n, err := f.ReadAt(b, at); err != nil && (!errors.Is(err, io.EOF) || n != len(b)) {
				return err
			}
			if !bytes.Equal(b, none[:len(b)]) {
				i := bytes.IndexFunc(b, func(r rune) bool { return r != 0 })
				return fmt.Errorf("%s: byte %d is not zero", path, at+int64(i))
			}
			at += int64(len(b))
		}
	}
}
