package pid1

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Creator is one thing that must exist before the worker can work.
type Creator interface {
	fmt.Stringer
	// Create makes the thing. It is no error when it exists already.
	Create() error
}

// Dir is a folder.
type Dir struct {
	Path string
	Mode fs.FileMode
}

func (d Dir) String() string { return fmt.Sprintf("dir %s (mode %#o)", d.Path, d.Mode) }

// Create implements Creator.
func (d Dir) Create() error { return os.MkdirAll(d.Path, d.Mode) }

// Mount is a file system without a device; the folder is made as well.
type Mount struct {
	Type   string
	Target string
	Flags  uintptr
	Data   string
}

func (m Mount) String() string {
	s := fmt.Sprintf("mount -t %s %s", m.Type, m.Target)
	if m.Data != "" {
		s += " -o " + m.Data
	}
	return s
}

// Create implements Creator.
func (m Mount) Create() error {
	if err := os.MkdirAll(m.Target, 0o755); err != nil {
		return err
	}
	err := unix.Mount(m.Type, m.Target, m.Type, m.Flags, m.Data)
	// EBUSY: the kernel, or an earlier try, has mounted the same thing there.
	if errors.Is(err, unix.EBUSY) {
		return nil
	}
	return err
}

// Dev is a device node.
type Dev struct {
	Path         string
	Type         uint32 // unix.S_IFCHR or unix.S_IFBLK
	Mode         uint32
	Major, Minor uint32
}

func (d Dev) String() string {
	kind := "c"
	if d.Type == unix.S_IFBLK {
		kind = "b"
	}
	return fmt.Sprintf("mknod -m %#o %s %s %d %d", d.Mode, d.Path, kind, d.Major, d.Minor)
}

// Create implements Creator.
func (d Dev) Create() error {
	err := unix.Mknod(d.Path, d.Type|d.Mode, int(unix.Mkdev(d.Major, d.Minor)))
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// Symlink is a symbolic link.
type Symlink struct{ Path, To string }

func (s Symlink) String() string { return fmt.Sprintf("ln -s %s %s", s.To, s.Path) }

// Create implements Creator. A file of that name stays as it is.
func (s Symlink) Create() error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return err
	}
	err := os.Symlink(s.To, s.Path)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Setting is a kernel setting or another small file that is written once.
type Setting struct{ Path, Value string }

func (s Setting) String() string { return fmt.Sprintf("%s = %q", s.Path, s.Value) }

// Create implements Creator.
func (s Setting) Create() error {
	if !strings.HasPrefix(s.Path, "/proc/") && !strings.HasPrefix(s.Path, "/sys/") {
		if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(s.Path, []byte(s.Value), 0o644)
}

// CreateAll makes everything in order, goes on after a failure, and returns one
// error that names each thing that could not be made.
func CreateAll(table []Creator) error {
	var errs []error
	for _, c := range table {
		if err := c.Create(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c, err))
		}
	}
	return errors.Join(errs...)
}
