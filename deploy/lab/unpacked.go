package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Unpacked returns the directory below which the files of a Debian package are. It is
// downloaded with apt and unpacked in the cache, once, and never installed: that is
// for programs whose packages start a daemon on the host.
func Unpacked(ctx context.Context, pkg string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	base := filepath.Join(cache, "unpacked")
	root := filepath.Join(base, pkg)
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, root+".lock", func() {})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		return root, err
	}
	work, err := os.MkdirTemp(base, ".unpacking-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := download(ctx, work, pkg); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d files: %w", pkg, len(debs), err)
	}
	files := filepath.Join(work, "files")
	if err := run(ctx, "dpkg-deb", "-x", debs[0], files); err != nil {
		return "", err
	}
	if err := os.Chmod(files, 0o755); err != nil {
		return "", err
	}
	return root, os.Rename(files, root)
}

func download(ctx context.Context, dir, pkg string) error {
	get := func() error {
		// apt's user for downloads may not write here
		cmd := exec.CommandContext(ctx, "apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", pkg)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get download %s: %w: %s", pkg, err, tail(string(out), 5))
		}
		return nil
	}
	err := get()
	if err == nil {
		return nil
	}
	// Package lists that are missing or old are the usual reason.
	if uerr := apt(ctx, "update"); uerr != nil {
		return fmt.Errorf("%w\n%w", err, uerr)
	}
	return get()
}
