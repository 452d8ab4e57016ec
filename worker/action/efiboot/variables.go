package efiboot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Variables is the directory in which the kernel shows the firmware's variables:
// a file each, its first four bytes the attributes (Linux,
// Documentation/filesystems/efivarfs.rst).
type Variables string

const (
	// global is EFI_GLOBAL_VARIABLE (UEFI 2.10, section 3.3), the vendor of the
	// variables that the specification defines.
	global = "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	// bootAttributes of BootNext and Boot####: non-volatile, boot services access
	// and runtime access.
	bootAttributes = 1 | 2 | 4
	// immutable is FS_IMMUTABLE_FL of the kernel's include/uapi/linux/fs.h.
	immutable = 0x10
)

func (v Variables) file(name string) string { return filepath.Join(string(v), name+global) }

// read returns a variable without its attributes.
func (v Variables) read(name string) ([]byte, error) {
	b, err := os.ReadFile(v.file(name))
	if err != nil {
		return nil, err
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("%s: %d bytes, no attributes", v.file(name), len(b))
	}
	return b[4:], nil
}

// write sets a variable. The file system hands the firmware what one write(2)
// has, so nothing is truncated and nothing comes in pieces.
func (v Variables) write(name string, data []byte) (err error) {
	path := v.file(name)
	made := false
	if err := mutable(path); errors.Is(err, fs.ErrNotExist) {
		made = true
	} else if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(binary.LittleEndian.AppendUint32(nil, bootAttributes), data...))
	err = errors.Join(err, f.Close())
	if err != nil && made {
		_ = os.Remove(path) // an empty variable that the firmware does not know of
	}
	return err
}

// mutable takes the flag off a variable with which the kernel protects those that
// it does not know, because machines were bricked by deleting them. Where there
// are no flags there is nothing to take off.
func mutable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || flags&immutable == 0 {
		return nil
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags&^immutable); err != nil {
		return fmt.Errorf("%s: make it writable: %w", path, err)
	}
	return nil
}

// Open returns the variables below dir, mounted so that they can be written. It
// mounts efivarfs when nothing is there, and again when it is read-only.
func Open(dir string) (Variables, error) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		if err := unix.Mount("efivarfs", dir, "efivarfs", flags, ""); err != nil {
			return "", fmt.Errorf("mount efivarfs on %s: %w", dir, err)
		}
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	if s.Flags&unix.ST_RDONLY != 0 {
		if err := unix.Mount("", dir, "", flags|unix.MS_REMOUNT, ""); err != nil {
			return "", fmt.Errorf("make %s writable: %w", dir, err)
		}
	}
	return Variables(dir), nil
}
