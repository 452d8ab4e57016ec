package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// journalFile is the journal's newest file; it is made with the first record.
type journalFile struct {
	f    *os.File
	gen  uint64
	size int64
}

// append writes and syncs. After a failure it goes on in a new file: what a failed
// sync has left in the old one cannot be known, and its earlier records are good.
func (j *journalFile) append(path string, b []byte) error {
	if j.f == nil {
		if err := j.create(path); err != nil {
			return err
		}
	}
	_, err := j.f.WriteAt(b, j.size)
	if err == nil {
		err = fdatasync(j.f)
	}
	if err != nil {
		// Best effort, so that a restart does not find what nobody was promised.
		_ = j.f.Truncate(j.size)
		j.close()
		return fmt.Errorf("lease journal: %w", err)
	}
	j.size += int64(len(b))
	return nil
}

func (j *journalFile) create(path string) error {
	j.gen++
	name := journalName(path, j.gen)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("lease journal: %w", err)
	}
	_, err = f.WriteString(journalMagic)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(name)
		return fmt.Errorf("lease journal: %w", err)
	}
	j.f, j.size = f, int64(len(journalMagic))
	return nil
}

func (j *journalFile) close() {
	if j.f != nil {
		_ = j.f.Close() // every record in it was synced
		j.f, j.size = nil, 0
	}
}

// fdatasync leaves out what a reader does not need, like the time of the change.
func fdatasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return err
		}
	}
}

// syncDir makes a new name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
