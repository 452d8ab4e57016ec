package lab

import (
	"context"
	"fmt"
	"io"
	"os"
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
