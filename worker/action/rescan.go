package action

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/worker/action/partition"
)

// rescan makes the kernel forget the partitions it knew and look at the disk
// again. Something may hold the disk for a moment after it was written, and the
// kernel refuses meanwhile.
func rescan(ctx context.Context, d disk, dev *device) error {
	if !dev.block {
		return nil
	}
	var err error
	for try := range 20 {
		if err = dev.ioctl(unix.BLKRRPART, nil); err == nil {
			return addPartitions(d, dev)
		}
		if errors.Is(err, unix.EINVAL) {
			return nil // a device that never has partitions
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(time.Duration(try+1) * 20 * time.Millisecond):
		}
	}
	return fmt.Errorf("read the partition table of %s again: %w (a partition is in use)", dev.path, err)
}

// addPartitions tells the kernel of the partitions when it found none itself:
// it may have been built without the parser for the table, as the kernels of
// small virtual machines are.
func addPartitions(d disk, dev *device) error {
	known, err := filepath.Glob(filepath.Join(d.sys, "*", "partition"))
	if err != nil || len(known) > 0 {
		return err
	}
	table, err := partition.Read(dev.layout())
	if err != nil {
		return nil // no table, or not one that we would judge better
	}
	for _, e := range table.Entries {
		p := unix.BlkpgPartition{Start: e.Start, Length: e.End - e.Start, Pno: int32(e.Number)}
		arg := unix.BlkpgIoctlArg{
			Op: unix.BLKPG_ADD_PARTITION, Datalen: int32(unsafe.Sizeof(p)), Data: (*byte)(unsafe.Pointer(&p)),
		}
		if err := dev.ioctl(unix.BLKPG, unsafe.Pointer(&arg)); err != nil {
			return fmt.Errorf("add partition %d of %s: %w", e.Number, dev.path, err)
		}
	}
	return nil
}

// layout is the disk for the partition package.
func (d *device) layout() partition.Disk {
	return partition.Disk{ReaderAt: d, Size: d.size, Sector: d.sector}
}
