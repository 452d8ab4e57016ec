package action

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// takeApart stops the arrays and mappings that are built on a disk, the topmost
// first. The worker starts none itself, and its stock kernel has the drivers as
// modules that nothing loads; a kernel with built-in RAID autodetection, or an extra
// part of the initramfs, does. What is on the disk is left alone.
func takeApart(env Env, d disk) error {
	for _, h := range holders(d.sys) {
		if err := stopHolder(env, h, 0); err != nil {
			return permanentf("disk %s is in use by %s, which cannot be stopped: %w (netboot the machine again)", d.path, h, err)
		}
	}
	return d.inUse()
}

// holders names the block devices that are built on one, or on its partitions, from
// its directory in /sys/block.
func holders(sys string) []string {
	var out []string
	for _, pattern := range []string{"holders/*", "*/holders/*"} {
		found, _ := filepath.Glob(filepath.Join(sys, pattern))
		for _, f := range found {
			out = append(out, filepath.Base(f))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxStack bounds how high devices can be built on each other: a RAID of multipath
// disks with encrypted logical volumes is five.
const maxStack = 16

func stopHolder(env Env, name string, depth int) error {
	sys := filepath.Join(env.Sys.block(), name)
	if depth > maxStack {
		return fmt.Errorf("more than %d devices are stacked", maxStack)
	}
	if _, err := os.Stat(sys); err != nil {
		return nil // stopped with something else that was built on it
	}
	for _, h := range holders(sys) {
		if err := stopHolder(env, h, depth+1); err != nil {
			return err
		}
	}
	env.Log.Info("stopping what is built on a disk", "device", name)
	switch {
	case attr(sys, "dm/name") != "":
		return removeMapping(filepath.Join(env.Sys.dev(), "mapper/control"), attr(sys, "dm/name"))
	case isDir(filepath.Join(sys, "md")):
		return stopArray(filepath.Join(env.Sys.dev(), name))
	}
	return fmt.Errorf("%s is neither a device mapper nor an md device", name)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// stopArray is the ioctl STOP_ARRAY of linux/raid/md_u.h.
func stopArray(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), 0x932, 0); err != nil {
		return fmt.Errorf("stop array %s: %w", path, err)
	}
	return nil
}

// mapping is struct dm_ioctl of linux/dm-ioctl.h.
type mapping struct {
	Version              [3]uint32
	Size, Start, Targets uint32
	Open                 int32
	Flags, EventNr, _    uint32
	Dev                  uint64
	Name                 [128]byte
	UUID                 [129]byte
	_                    [7]byte
}

// dmRemove is DM_DEV_REMOVE: _IOWR(0xfd, 4, struct dm_ioctl).
const dmRemove = 0xc138fd04

// removeMapping removes a device of the device mapper by its name.
func removeMapping(control, name string) error {
	if len(name) >= 128 || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q is no name of a mapping", name)
	}
	f, err := os.OpenFile(control, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	m := mapping{Version: [3]uint32{4, 0, 0}}
	m.Size = uint32(binary.Size(m))
	copy(m.Name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), dmRemove, uintptr(unsafe.Pointer(&m))); errno != 0 {
		return fmt.Errorf("remove mapping %s: %w", name, errno)
	}
	return nil
}
