package module

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Loader loads modules, each once, several at a time. It is safe for concurrent use.
type Loader struct {
	index *Index
	dir   string
	// insert loads one file; replaced in tests.
	insert func(path string) error

	mu   sync.Mutex
	done map[string]*once
}

type once struct {
	sync.Once
	err error
}

// NewLoader loads the modules of the folder dir, which holds the files that index
// was read from.
func NewLoader(index *Index, dir string) *Loader {
	return &Loader{index: index, dir: dir, insert: insert, done: map[string]*once{}}
}

// OpenLoader reads the depmod files of the kernel that runs, below root (for
// example /lib/modules). Its error wraps fs.ErrNotExist where there are none.
func OpenLoader(root string) (*Loader, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, fmt.Errorf("uname: %w", err)
	}
	dir := filepath.Join(root, unix.ByteSliceToString(u.Release[:]))
	index, err := ReadIndex(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("kernel modules of %s: %w (the initramfs is of another kernel: boot both from one build)", dir, err)
	}
	return NewLoader(index, dir), nil
}

// Match lists the modules for a modalias.
func (l *Loader) Match(modalias string) []string { return l.index.Match(modalias) }

// Load loads what name stands for: a module, or an alias like fs-vfat. It is no
// error when that is built in, loaded already, or not known. Its error names each
// file that the kernel refused.
func (l *Loader) Load(name string) error {
	var errs []error
	for _, m := range l.index.Resolve(name) {
		errs = append(errs, l.load(m))
	}
	return errors.Join(errs...)
}

// load loads a module with what it needs. within are the modules that are being
// loaded for the sake of which this one is: soft dependencies may be circular.
func (l *Loader) load(name string, within ...string) error {
	within = append(within[:len(within):len(within)], name)
	var errs []error
	for _, f := range l.index.Files(name) {
		errs = append(errs, l.file(f, within))
	}
	return errors.Join(errs...)
}

// file loads one file once; who comes second waits for the first.
func (l *Loader) file(f string, within []string) error {
	for _, s := range l.index.soft[Name(f)] {
		for _, m := range l.index.Resolve(s) {
			if !slices.Contains(within, m) {
				// A soft dependency may be missing, and may be refused.
				_ = l.load(m, within...)
			}
		}
	}
	l.mu.Lock()
	o := l.done[f]
	if o == nil {
		o = &once{}
		l.done[f] = o
	}
	l.mu.Unlock()
	o.Do(func() {
		if err := l.insert(filepath.Join(l.dir, f)); err != nil {
			o.err = fmt.Errorf("module %s: %w", Name(f), err)
		}
	})
	return o.err
}

// insert gives a file to the kernel. It returns once the module's init function
// has: for many drivers after they have found their devices.
func insert(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	switch {
	case errors.Is(err, unix.EEXIST):
		return nil
	case errors.Is(err, unix.ENODEV):
		// The driver looked and found nothing that it wants to drive.
		return nil
	}
	return err
}
