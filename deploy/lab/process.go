package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ip runs iproute2 and puts what it printed into the error.
func ip(ctx context.Context, args ...string) error { return run(ctx, "ip", args...) }

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// endProcesses kills every process whose network namespace is the one at path,
// and waits until they are gone. Children that daemonised are found too; a pid
// list would have missed them. This process is spared: one of its threads may
// be inside for the length of a Do.
func endProcesses(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		pids, err := processesIn(path)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := kill(ctx, pid, path); err != nil {
				return err
			}
		}
	}
}

// processesIn lists the live processes inside the namespace at path.
func processesIn(path string) ([]int, error) {
	var want unix.Stat_t
	if err := unix.Stat(path, &want); err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A zombie has no namespace any more, so it is not found.
		if inNamespace(pid, want) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func inNamespace(pid int, want unix.Stat_t) bool {
	var have unix.Stat_t
	err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &have)
	return err == nil && have.Dev == want.Dev && have.Ino == want.Ino
}

// kill ends one process through a pidfd, so a pid that was given to somebody
// else in the meantime is never hit, and waits for its end.
func kill(ctx context.Context, pid int, path string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var want unix.Stat_t
	if err := unix.Stat(path, &want); err != nil || !inNamespace(pid, want) {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("process %d does not end (see /proc/%d/stack): %w", pid, pid, ctx.Err())
		}
	}
}
