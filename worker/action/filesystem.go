package action

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// filesystem is what the superblock of a partition says.
type filesystem struct {
	kind  string // as mount(2) calls it; empty when unknown
	label string
}

// superblock says where to look for a kind of file system.
type superblock struct {
	kind         string
	offset       int64
	magic        string
	label, width int64 // of the label; width 0 for none
}

// superblocks are the file systems the worker mounts, after their on-disk
// formats: ext4, XFS, btrfs, FAT32, and FAT16 or FAT12.
var superblocks = []superblock{
	{"ext4", 0x438, "\x53\xef", 0x478, 16},
	{"xfs", 0, "XFSB", 0x6c, 12},
	{"btrfs", 0x10040, "_BHRfS_M", 0x1012b, 256},
	{"vfat", 82, "FAT32   ", 71, 11},
	{"vfat", 54, "FAT1", 43, 11},
}

// identify reads the superblock.
func identify(r io.ReaderAt) filesystem {
	for _, s := range superblocks {
		magic := make([]byte, len(s.magic))
		if _, err := r.ReadAt(magic, s.offset); err != nil || string(magic) != s.magic {
			continue
		}
		label := make([]byte, s.width)
		_, _ = r.ReadAt(label, s.label)
		if end := bytes.IndexByte(label, 0); end >= 0 {
			label = label[:end]
		}
		text := strings.TrimRight(string(label), " ")
		if s.kind == "vfat" && text == "NO NAME" {
			text = ""
		}
		return filesystem{s.kind, text}
	}
	return filesystem{}
}

func identifyPath(path string) (filesystem, error) {
	f, err := os.Open(path)
	if err != nil {
		return filesystem{}, err
	}
	defer f.Close()
	return identify(f), nil
}

// modules are what a file system needs besides its own module, when the kernel
// has no helper program to ask: FAT names are translated by tables of their own.
var modules = map[string][]string{
	"vfat": {"nls_cp437", "nls_ascii", "nls_iso8859-1", "vfat"},
}

// mountOptions for each kind. An image that was written twice has the UUID of
// another XFS that may be mounted.
var mountOptions = map[string]string{"xfs": "nouuid"}

// mountAt mounts a file system. Programs and devices in it are not for us.
func mountAt(env Env, device, kind, target, options string, readOnly bool) error {
	if err := loadFilesystem(env, kind); err != nil {
		return err
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	all := []string{}
	for _, o := range []string{mountOptions[kind], options} {
		if o != "" {
			all = append(all, o)
		}
	}
	err := unix.Mount(device, target, kind, flags, strings.Join(all, ","))
	if errors.Is(err, unix.ENODEV) {
		return permanentf("mount %s: this kernel has no %s (boot a worker kernel that has it)", device, kind)
	}
	if err != nil {
		return fmt.Errorf("mount %s as %s: %w", device, kind, err)
	}
	return nil
}

// loadFilesystem loads the modules of a file system that the kernel does not
// have yet.
func loadFilesystem(env Env, kind string) error {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || env.LoadModule == nil || slices.Contains(strings.Fields(string(known)), kind) {
		return nil
	}
	names := modules[kind]
	if names == nil {
		names = []string{kind}
	}
	for _, name := range names {
		if err := env.LoadModule(name); err != nil && name == kind {
			return fmt.Errorf("load the %s module: %w", name, err)
		}
	}
	return nil
}
