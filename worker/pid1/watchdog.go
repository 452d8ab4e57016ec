package pid1

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Times of the hardware watchdog.
const (
	watchdogTimeout = 60 // seconds
	watchdogFeed    = 15 * time.Second
)

// Watchdog feeds the machine's hardware watchdog until ctx is done, so that a
// kernel that hangs restarts the machine. It returns the error of opening the
// device (fs.ErrNotExist where the machine has none) and nil once ctx is done.
func Watchdog(ctx context.Context) error {
	f, err := os.OpenFile("/dev/watchdog", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	// Many devices have a fixed or a shorter timeout; what they say stays.
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.WDIOC_SETTIMEOUT, watchdogTimeout)
	tick := time.NewTicker(watchdogFeed)
	defer tick.Stop()
	for {
		if _, err := f.Write([]byte{0}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			// The letter V disarms the watchdog (Documentation/watchdog/watchdog-api.rst):
			// the firmware and the installed system must not be restarted by it.
			_, err := f.WriteString("V")
			return err
		case <-tick.C:
		}
	}
}
