package action

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a directory tree that holds somebody else's system. Every path is
// resolved by the kernel as if the tree were the root (openat2(2) with
// RESOLVE_IN_ROOT): symbolic links in it, absolute ones too, lead to where they
// lead in the running system, and none leads out.
type tree struct {
	root *os.File
	log  *slog.Logger // what is changed; never nil
}

func openTree(dir string) (*tree, error) {
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &tree{f, slog.New(slog.DiscardHandler)}, nil
}

func (t *tree) close() { t.root.Close() }

// sync writes the file system to its medium.
func (t *tree) sync() error {
	d, err := t.open(".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// open opens an existing path in the tree.
func (t *tree) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat2(int(t.root.Fd()), clean(name), &unix.OpenHow{
		Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/" + clean(name), Err: err}
	}
	return os.NewFile(uintptr(fd), "/"+clean(name)), nil
}

func clean(name string) string {
	return path.Clean("./" + strings.TrimLeft(name, "/"))
}

// exists reports whether name is there, following links.
func (t *tree) exists(name string) bool {
	f, err := t.open(name, unix.O_PATH)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// read returns the content of a regular file of at most 1 MiB.
func (t *tree) read(name string) ([]byte, error) {
	f, err := t.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no regular file", f.Name()))
	}
	return io.ReadAll(io.LimitReader(f, mib))
}

// list returns the names in a directory, sorted; none when it is not there.
func (t *tree) list(name string) ([]string, error) {
	f, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// in opens the directory of name for work on its last component. With create,
// missing directories are made, 0755 and root's.
func (t *tree) in(name string, create bool) (*os.Root, string, error) {
	dir, base := path.Split(clean(name))
	if base == "." || base == ".." || base == "" {
		return nil, "", fmt.Errorf("%q names no file", name)
	}
	if create {
		if err := t.mkdirs(dir); err != nil {
			return nil, "", err
		}
	}
	f, err := t.open(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return root, base, err
}

func (t *tree) mkdirs(dir string) error {
	dir = clean(dir)
	if dir == "." || t.exists(dir) {
		return nil
	}
	parent, base, err := t.in(dir, true)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.Mkdir(base, 0o755); err != nil {
		return fmt.Errorf("/%s: %w (a broken link, or a file in its place)", dir, err)
	}
	return parent.Chmod(base, 0o755)
}

// file is something to write.
type file struct {
	name     string
	content  []byte
	mode     os.FileMode
	uid, gid int
}

// write replaces a file: the old one is there until the new one is complete on
// the medium. A link in its place is replaced, never followed.
func (t *tree) write(w file) error {
	root, base, err := t.in(w.name, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(base); err == nil && info.IsDir() {
		return permanentf("/%s is a directory", clean(w.name))
	}
	temporary := ".rackstrap-" + base
	if len(temporary) > 255 {
		temporary = ".rackstrap-new"
	}
	if err := writeNew(root, temporary, w); err != nil {
		_ = root.Remove(temporary)
		return fmt.Errorf("write /%s: %w", clean(w.name), err)
	}
	if err := root.Rename(temporary, base); err != nil {
		_ = root.Remove(temporary)
		return fmt.Errorf("write /%s: %w", clean(w.name), err)
	}
	t.log.Info("file written", "path", "/"+clean(w.name), "bytes", len(w.content), "mode", fmt.Sprintf("%04o", uint32(w.mode)), "uid", w.uid, "gid", w.gid)
	return nil
}

func writeNew(root *os.Root, name string, w file) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(w.content)
	// The owner first: changing it takes set-id bits away. FAT has no owners,
	// and everything there is root's.
	if err == nil {
		if err = f.Chown(w.uid, w.gid); errors.Is(err, unix.EPERM) && w.uid == 0 && w.gid == 0 {
			err = nil
		}
	}
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), uint32(w.mode))
		if errors.Is(err, unix.EPERM) {
			err = nil // FAT, where the mode is that of the mount
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove deletes a file, a link or a directory with what is in it, following
// no link. It is no error when there is nothing.
func (t *tree) remove(name string) error {
	root, base, err := t.in(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(base); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := root.RemoveAll(base); err != nil {
		return err
	}
	t.log.Info("removed", "path", "/"+clean(name))
	return nil
}

// symlink makes or replaces a link.
func (t *tree) symlink(to, name string) error {
	root, base, err := t.in(name, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(base); err != nil {
		return err
	}
	if err := root.Symlink(to, base); err != nil {
		return err
	}
	t.log.Info("link made", "path", "/"+clean(name), "to", to)
	return nil
}

// info describes the last component of name without following it.
func (t *tree) info(name string) (fs.FileInfo, error) {
	root, base, err := t.in(name, false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Lstat(base)
}
