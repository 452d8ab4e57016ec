package pid1

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Uptime is the time since the kernel's start.
func Uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// SetClock sets the system's clock.
func SetClock(t time.Time) error {
	ts := unix.NsecToTimespec(t.UnixNano())
	return unix.ClockSettime(unix.CLOCK_REALTIME, &ts)
}

// SetHostname sets the kernel's host name.
func SetHostname(name string) error { return unix.Sethostname([]byte(name)) }

// Resolver writes the name servers and search domains for Go's resolver.
func Resolver(servers, search []string) error {
	var b strings.Builder
	for _, s := range servers {
		b.WriteString("nameserver " + s + "\n")
	}
	if len(search) > 0 {
		b.WriteString("search " + strings.Join(search, " ") + "\n")
	}
	return Setting{Path: "/etc/resolv.conf", Value: b.String()}.Create()
}

// LimitMemory makes Go's garbage collector keep the heap below a share of the
// machine's memory, and returns the limit. The initramfs, the kernel and the page
// cache of the disks need the rest.
func LimitMemory() int64 {
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	limit := heapLimit(memTotal(meminfo))
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return limit
}

// heapLimit is the soft limit of the Go heap, in bytes: a third of the memory,
// at least 64 MiB, at most 1 GiB.
func heapLimit(total int64) int64 {
	if total <= 0 {
		return 0
	}
	return min(max(total/3, 64<<20), 1<<30)
}

// memTotal reads MemTotal of /proc/meminfo, in bytes.
func memTotal(meminfo []byte) int64 {
	for line := range bytes.Lines(meminfo) {
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}
