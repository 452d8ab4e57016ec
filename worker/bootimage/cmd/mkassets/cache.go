package main

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// The text of this program is part of the cache keys: whoever changes what it
// makes need not remember to change a version number.
//
//go:embed *.go
var recipe embed.FS

// key returns the name under which the cache has what was made from inputs by
// this program.
func key(inputs ...string) (string, error) {
	h := sha256.New()
	for _, fsys := range []fs.FS{recipe, bootimage.Recipe()} {
		names, err := fs.Glob(fsys, "*.go")
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		}
	}
	for _, in := range inputs {
		fmt.Fprintf(h, "%d %s\n", len(in), in)
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}

// lock makes the cache folder and takes it for this process; it waits while
// another one has it.
func lock(cache string) (unlock func() error, err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(cache, "mkassets.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
	}
	return f.Close, nil
}

// cached returns the path of an entry of the cache, after produce wrote it if
// it was not there. An interrupted produce leaves nothing under that path. Of the
// folder's entries the `keep` most recently used stay.
func cached(dir, name string, keep int, produce func(tmp string) error) (string, error) {
	file := filepath.Join(dir, name)
	now := time.Now()
	if err := os.Chtimes(file, now, now); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(dir, ".tmp-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, name)
	if err := produce(made); err != nil {
		return "", err
	}
	if err := os.Rename(made, file); err != nil {
		return "", err
	}
	return file, prune(dir, keep)
}

// prune removes what an interrupted run left, and all but the newest entries.
func prune(dir string, keep int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	ages := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !strings.HasPrefix(e.Name(), ".tmp-") || time.Since(info.ModTime()) > time.Hour {
			ages[e.Name()] = info.ModTime()
		}
	}
	names := slices.SortedFunc(func(yield func(string) bool) {
		for name := range ages {
			if !yield(name) {
				return
			}
		}
	}, func(a, b string) int { return cmp.Or(ages[b].Compare(ages[a]), strings.Compare(a, b)) })
	for i, name := range names {
		if i >= keep || strings.HasPrefix(name, ".tmp-") {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checksum returns the sha256 of a file in hexadecimal.
func checksum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
