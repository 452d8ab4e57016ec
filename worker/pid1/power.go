package pid1

import (
	"bufio"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// PowerAction is how the machine leaves the worker.
type PowerAction string

// The power actions.
const (
	Restart  PowerAction = "restart"
	PowerOff PowerAction = "power off"
)

// syncLimit is how long a disk may take to write what it holds in its caches. A
// dead disk must not keep the machine here.
const syncLimit = 90 * time.Second

// Leave writes out all caches, unmounts what is below /mnt and /tmp, and restarts
// the machine or switches it off. It returns only when the kernel refuses both.
func Leave(what PowerAction) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		unix.Sync()
		mounts, _ := os.ReadFile("/proc/self/mounts")
		for _, target := range diskMounts(string(mounts)) {
			if unix.Unmount(target, 0) != nil {
				_ = unix.Unmount(target, unix.MNT_DETACH)
			}
		}
		unix.Sync()
	}()
	select {
	case <-done:
	case <-time.After(syncLimit):
	}
	cmd := unix.LINUX_REBOOT_CMD_RESTART
	if what == PowerOff {
		// A machine that cannot switch itself off halts here; its record says off,
		// and the operator sees the last line on the console.
		cmd = unix.LINUX_REBOOT_CMD_POWER_OFF
	}
	return unix.Reboot(cmd)
}

// diskMounts lists the mount points of block devices, the innermost first.
func diskMounts(mounts string) []string {
	var out []string
	sc := bufio.NewScanner(strings.NewReader(mounts))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) >= 2 && strings.HasPrefix(f[0], "/dev/") {
			out = append([]string{unescapeMount(f[1])}, out...)
		}
	}
	return out
}

// unescapeMount undoes the octal escapes of proc(5) mounts: blank, tab, newline
// and backslash.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
