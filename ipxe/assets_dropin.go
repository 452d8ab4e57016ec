package ipxe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// partFormats are the file name endings of extra initramfs parts with the
// bytes that the kernel knows each format by (lib/decompress.c, and for newc
// Documentation/driver-api/early-userspace/buffer-format.rst).
var partFormats = []struct {
	suffix string
	magic  []string
}{
	{".cpio", []string{"070701", "070702"}},
	{".cpio.gz", []string{"\x1f\x8b"}},
	{".cpio.bz2", []string{"BZh"}},
	{".cpio.xz", []string{"\xfd7zXZ\x00"}},
	{".cpio.zst", []string{"\x28\xb5\x2f\xfd"}},
}

// openDropIn opens a regular file below dir. Symbolic links may point to other
// files inside dir, never out of it. It returns an error wrapping
// fs.ErrNotExist when dir or the file is absent.
func openDropIn(dir, name string) (part, error) {
	file := filepath.Join(dir, filepath.FromSlash(name))
	root, err := os.OpenRoot(dir)
	if err != nil {
		return part{}, err
	}
	defer root.Close()
	// Without O_NONBLOCK a FIFO in the folder would block for ever.
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return part{}, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return part{}, fmt.Errorf("%s: %w (put a readable copy into the folder, not a link out of it)", file, err)
	}
	info, err := f.Stat()
	if err != nil {
		return part{}, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return part{}, errors.Join(fmt.Errorf("%s: %w (a folder)", file, fs.ErrNotExist), f.Close())
	}
	if !info.Mode().IsRegular() {
		return part{}, errors.Join(fmt.Errorf("%s: not a regular file (remove it)", file), f.Close())
	}
	id := fmt.Sprintf("%s:%d:%d", file, info.Size(), info.ModTime().UnixNano())
	return part{ReaderAt: f, Closer: f, size: info.Size(), id: id, modified: info.ModTime()}, nil
}

// extraParts opens the operator's initramfs parts in the order of their names.
func (a *Assets) extraParts() (parts []part, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeParts(parts))
			parts = nil
		}
	}()
	names, err := partNames(a.parts)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := openDropIn(a.parts, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the folder was listed
		}
		if err != nil {
			return parts, err
		}
		parts = append(parts, p)
		if err := checkPart(p, name); err != nil {
			return parts, fmt.Errorf("%s: %w", filepath.Join(a.parts, name), err)
		}
	}
	return parts, nil
}

// partNames lists the files of dir whose ending says that they are initramfs
// parts. Hidden files are left out, so that a copy in progress can have one.
func partNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && partMagic(e.Name()) != nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func partMagic(name string) []string {
	for _, f := range partFormats {
		if strings.HasSuffix(name, f.suffix) {
			return f.magic
		}
	}
	return nil
}

// checkPart refuses a part whose first bytes are not what its name says: the
// kernel would print "invalid magic" and drop it and everything behind it.
func checkPart(p part, name string) error {
	head := make([]byte, 6)
	n, err := p.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	magic := partMagic(name)
	if !slices.ContainsFunc(magic, func(m string) bool { return bytes.HasPrefix(head[:n], []byte(m)) }) {
		return fmt.Errorf("starts with %q, not %q (make it with `cpio -o -H newc`, compressed as its name says, and move it into place when complete)",
			head[:n], strings.Join(magic, " or "))
	}
	return nil
}

// bootNames lists the files below dir as slash-separated names, without the
// hidden ones. Links to folders are not followed.
func bootNames(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case rel == ".":
			return nil
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), ".") || d.IsDir() || linksToFolder(file, d):
			return nil
		}
		names = append(names, filepath.ToSlash(rel))
		return nil
	})
	return names, err
}

func linksToFolder(file string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}
