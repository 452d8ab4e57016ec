package action

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/superblock"
)

// filesystem is what the superblock of a partition says.
type filesystem struct {
	kind  string // as mount(2) calls it; empty when unknown
	label string
}

// mountKinds are the file systems the worker mounts, as mount(2) calls them. The driver of
// ext4 mounts its elders, too.
var mountKinds = map[hardware.ContentKind]string{
	hardware.ContentExt2: "ext4", hardware.ContentExt3: "ext4", hardware.ContentExt4: "ext4",
	hardware.ContentXFS: "xfs", hardware.ContentBtrfs: "btrfs", hardware.ContentVFAT: "vfat",
}

// identify reads the superblock.
func identify(r io.ReaderAt) filesystem {
	f := superblock.Filesystem(r)
	return filesystem{mountKinds[f.Kind], f.Label}
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
