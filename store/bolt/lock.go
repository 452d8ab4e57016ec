package bolt

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	bberrors "go.etcd.io/bbolt/errors"
)

// openError turns what bbolt says into what to do about it.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bberrors.ErrTimeout):
		return fmt.Errorf("open %s: in use by %s", path, holder(path))
	case errors.Is(err, bberrors.ErrInvalid), errors.Is(err, bberrors.ErrChecksum), errors.Is(err, bberrors.ErrVersionMismatch):
		return fmt.Errorf("open %s: damaged, or not a rackstrap database (restore a backup with `rackstrap restore`): %w", path, err)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("open %s: its directory does not exist (make it, or name another: `data` in the configuration): %w", path, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("open %s: no permission (run as the user that owns it, or as root): %w", path, err)
	}
	return diskError(path, err)
}

// holder says which process has the file locked. /proc/locks has the truth even
// where a pid file would be left over; it shows no process of another container.
func holder(path string) string {
	locks, err := os.ReadFile("/proc/locks")
	var st syscall.Stat_t
	if err == nil {
		err = syscall.Stat(path, &st)
	}
	if err == nil {
		if pid, ok := lockPID(string(locks), st.Ino); ok {
			if pid == os.Getpid() {
				return fmt.Sprintf("this process, pid %d, which opened it before", pid)
			}
			return fmt.Sprintf("pid %d%s (stop it, or name another `data` directory in the configuration)", pid, command(pid))
		}
	}
	return "another process (stop it, or name another `data` directory in the configuration)"
}

// lockPID finds the flock on an inode in the text of /proc/locks (proc_locks(5)):
// `1: FLOCK  ADVISORY  WRITE 812 fe:00:393 0 EOF`.
func lockPID(locks string, inode uint64) (int, bool) {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" {
			continue // waiters have "->" in the second field
		}
		dev := strings.Split(f[5], ":")
		ino, err := strconv.ParseUint(dev[len(dev)-1], 10, 64)
		if err != nil || ino != inode {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid, true
		}
	}
	return 0, false
}

func command(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return ", " + strings.TrimSpace(string(b))
}
