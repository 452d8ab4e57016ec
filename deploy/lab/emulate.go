package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	binfmtDir = "/proc/sys/fs/binfmt_misc"
	// binfmtEntry is ours alone: what the host has stays as it is.
	binfmtEntry = "rackstrap-arm64"
	// binfmtARM64 tells the kernel of programs for arm64: the bytes of their ELF header
	// (with any OS ABI; both kinds of executable) and their mask. F has it open the
	// emulator now, so that it works where the emulator's path leads nowhere
	// (Documentation/admin-guide/binfmt-misc.rst).
	binfmtARM64 = ":" + binfmtEntry + `:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00` +
		`:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:%s:F`
)

// emulate lets this machine run programs of an architecture until undo is called. The
// kernel's table of program formats is the host's; the entry is there only for so long.
func emulate(ctx context.Context, arch, cacheDir string) (undo func() error, err error) {
	if arch == runtime.GOARCH {
		return func() error { return nil }, nil
	}
	if arch != "arm64" {
		return nil, fmt.Errorf("programs for %s cannot be run here (build on a machine with that processor)", arch)
	}
	emulator, err := qemuUser(ctx, cacheDir)
	if err != nil {
		return nil, err
	}
	unmount := func() error { return nil }
	if _, err := os.Stat(filepath.Join(binfmtDir, "register")); errors.Is(err, fs.ErrNotExist) {
		if err := unix.Mount("none", binfmtDir, "binfmt_misc", 0, ""); err != nil {
			return nil, fmt.Errorf("mount binfmt_misc at %s: %w (this needs root, and a kernel with CONFIG_BINFMT_MISC)", binfmtDir, err)
		}
		unmount = func() error { return unix.Unmount(binfmtDir, 0) }
	}
	entry := filepath.Join(binfmtDir, binfmtEntry)
	remove := func() error { return os.WriteFile(entry, []byte("-1"), 0) }
	if _, err := os.Stat(entry); err == nil { // of a build that was killed
		if err := remove(); err != nil {
			return nil, errors.Join(err, unmount())
		}
	}
	if err := os.WriteFile(filepath.Join(binfmtDir, "register"), fmt.Appendf(nil, binfmtARM64, emulator), 0); err != nil {
		return nil, errors.Join(err, unmount())
	}
	return func() error { return errors.Join(remove(), unmount()) }, nil
}

// qemuUser returns a static QEMU for programs of arm64. Its package is unpacked, not
// installed: that would register emulators for thirty processors for good.
func qemuUser(ctx context.Context, cacheDir string) (string, error) {
	const pkg, program = "qemu-user-static", "qemu-aarch64-static"
	file := filepath.Join(cacheDir, program)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	dir, err := os.MkdirTemp(cacheDir, ".building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	get := exec.CommandContext(ctx, "apt-get", "download", "-q", pkg)
	get.Dir = dir
	if err := runTail(get); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("downloading %s left %d files, want one (%w)", pkg, len(debs), err)
	}
	if err := run(ctx, "dpkg-deb", "-x", debs[0], dir); err != nil {
		return "", err
	}
	return file, os.Rename(filepath.Join(dir, "usr/bin", program), file)
}
