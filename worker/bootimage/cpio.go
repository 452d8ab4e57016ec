package bootimage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
)

// Entry is one file of an initramfs.
type Entry struct {
	Name string      // slash-separated, without a leading slash
	Mode fs.FileMode // type and permission bits; the type is one of regular, dir, symlink, char device, block device
	// Open returns the content of a regular file, Size its length in bytes.
	Open func() (io.ReadCloser, error)
	Size int64
	Link string // target of a symbolic link
	// Major and Minor are the numbers of a device node.
	Major, Minor uint32
}

// Bytes returns a regular file with that content.
func Bytes(name string, perm fs.FileMode, data []byte) Entry {
	return Entry{
		Name: name, Mode: perm, Size: int64(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(data))), nil },
	}
}

// Dir returns a folder that its owner may write.
func Dir(name string) Entry { return Entry{Name: name, Mode: fs.ModeDir | 0o755} }

// WriteCPIO writes the entries as a newc archive, as the kernel unpacks it
// (Documentation/driver-api/early-userspace/buffer-format.rst). Equal entries
// give equal bytes, whatever their order: they are sorted, everything belongs
// to root, every time is 0, inode numbers count up. Missing parent folders are
// added.
//
// It returns an error that names the entry when a name is not a clean relative
// path or occurs twice, when the content is not Size bytes, or when a file has
// 4 GiB or more, which the format cannot say.
func WriteCPIO(w io.Writer, entries []Entry) error {
	all, err := complete(entries)
	if err != nil {
		return err
	}
	c := &cpioWriter{w: bufio.NewWriterSize(w, 1<<16)}
	for i, e := range all {
		if err := c.entry(e, uint32(i+1)); err != nil {
			return fmt.Errorf("cpio: %s: %w", e.Name, err)
		}
	}
	// The trailer makes the kernel forget inode numbers, so that the next
	// archive may count from 1 again.
	c.header(header{nlink: 1}, "TRAILER!!!")
	if c.err != nil {
		return c.err
	}
	return c.w.Flush()
}

// complete sorts the entries and adds the parents that they lack.
func complete(entries []Entry) ([]Entry, error) {
	all := slices.Clone(entries)
	known := map[string]bool{".": true}
	for _, e := range entries {
		if !fs.ValidPath(e.Name) || e.Name == "." || strings.ContainsRune(e.Name, 0) {
			return nil, fmt.Errorf("cpio: %q is not a clean relative path", e.Name)
		}
		if known[e.Name] {
			return nil, fmt.Errorf("cpio: %s: occurs twice", e.Name)
		}
		known[e.Name] = true
	}
	for _, e := range entries {
		for dir := path.Dir(e.Name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, Dir(dir))
		}
	}
	// A folder's name is a prefix of what is in it, so it comes first.
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

type cpioWriter struct {
	w   *bufio.Writer
	off int64
	err error // of the first failed write
}

type header struct{ ino, mode, nlink, size, major, minor uint32 }

func (c *cpioWriter) entry(e Entry, ino uint32) error {
	typ, err := unixType(e.Mode)
	if err != nil {
		return err
	}
	h := header{ino: ino, mode: typ | uint32(e.Mode.Perm()), nlink: 1, major: e.Major, minor: e.Minor}
	switch {
	case e.Mode.IsDir():
		h.nlink = 2
	case e.Mode&fs.ModeSymlink != 0:
		h.size = uint32(len(e.Link))
	case e.Mode.IsRegular():
		if e.Size < 0 || e.Size > math.MaxUint32 {
			return fmt.Errorf("%d bytes do not fit into a cpio archive", e.Size)
		}
		h.size = uint32(e.Size)
	}
	c.header(h, e.Name)
	switch {
	case e.Mode&fs.ModeSymlink != 0:
		c.write([]byte(e.Link))
	case e.Mode.IsRegular():
		if err := c.content(e); err != nil {
			return err
		}
	}
	c.pad()
	return c.err
}

// content copies the file and checks that its length is as announced.
func (c *cpioWriter) content(e Entry) error {
	r, err := e.Open()
	if err != nil {
		return err
	}
	n, err := io.Copy(c.w, io.LimitReader(r, e.Size+1))
	c.off += n
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if n != e.Size {
		return fmt.Errorf("content is not %d bytes (did the file change?)", e.Size)
	}
	return nil
}

func (c *cpioWriter) header(h header, name string) {
	fields := [...]uint32{
		h.ino, h.mode, 0, 0, h.nlink, 0, h.size, // uid, gid and mtime are 0
		0, 0, h.major, h.minor, uint32(len(name) + 1), 0,
	}
	b := []byte("070701")
	for _, f := range fields {
		b = fmt.Appendf(b, "%08X", f)
	}
	c.write(append(append(b, name...), 0))
	c.pad()
}

func (c *cpioWriter) write(b []byte) {
	if c.err != nil {
		return
	}
	n, err := c.w.Write(b)
	c.off += int64(n)
	c.err = err
}

func (c *cpioWriter) pad() { c.write(make([]byte, -c.off&3)) }

// unixType returns the S_IFMT bits of a mode.
func unixType(m fs.FileMode) (uint32, error) {
	switch m.Type() {
	case 0:
		return 0o100000, nil
	case fs.ModeDir:
		return 0o040000, nil
	case fs.ModeSymlink:
		return 0o120000, nil
	case fs.ModeDevice | fs.ModeCharDevice:
		return 0o020000, nil
	case fs.ModeDevice:
		return 0o060000, nil
	}
	return 0, fmt.Errorf("type %v has no place in an initramfs", m.Type())
}
