package pid1

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Reap takes the exit codes of children that nobody else waits for, until ctx is
// done. The kernel gives orphans to process 1; the worker itself starts no
// programs, so every dead child is such an orphan.
func Reap(ctx context.Context) error {
	dead := make(chan os.Signal, 1)
	signal.Notify(dead, unix.SIGCHLD)
	defer signal.Stop(dead)
	for {
		reapAll()
		select {
		case <-ctx.Done():
			return nil
		case <-dead:
		}
	}
}

func reapAll() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}
