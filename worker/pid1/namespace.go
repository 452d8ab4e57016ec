package pid1

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// panicSeconds is how long the kernel shows a panic before it restarts the
// machine. A panic of the worker is one too: the kernel does not survive its init.
const panicSeconds = 30

// Required is what the worker cannot do without, in the order it must be made.
func Required() []Creator {
	const safe = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
	return []Creator{
		Mount{Type: "proc", Target: "/proc", Flags: safe},
		Mount{Type: "sysfs", Target: "/sys", Flags: safe},
		Mount{Type: "devtmpfs", Target: "/dev", Flags: unix.MS_NOSUID, Data: "mode=0755"},
		// A worker that dies must not leave the machine dead.
		Setting{Path: "/proc/sys/kernel/panic", Value: strconv.Itoa(panicSeconds)},
		Mount{Type: "tmpfs", Target: "/run", Flags: unix.MS_NOSUID | unix.MS_NODEV, Data: "mode=0755,size=10%"},
		Mount{Type: "tmpfs", Target: "/tmp", Flags: unix.MS_NOSUID | unix.MS_NODEV, Data: "mode=1777,size=25%"},
		Dir{Path: "/mnt", Mode: 0o755},
		Dir{Path: "/etc", Mode: 0o755},
	}
}

// Optional is what some kernels lack and the worker can do without.
func Optional() []Creator {
	return []Creator{
		// devtmpfs makes these on every kernel that we ship; one without them still
		// needs somewhere to write to.
		Dev{Path: "/dev/null", Type: unix.S_IFCHR, Mode: 0o666, Major: 1, Minor: 3},
		Dev{Path: "/dev/kmsg", Type: unix.S_IFCHR, Mode: 0o644, Major: 1, Minor: 11},
		Symlink{Path: "/dev/fd", To: "/proc/self/fd"},
		Symlink{Path: "/dev/stdin", To: "/proc/self/fd/0"},
		Symlink{Path: "/dev/stdout", To: "/proc/self/fd/1"},
		Symlink{Path: "/dev/stderr", To: "/proc/self/fd/2"},
		// The kernel calls this program when a mount or a cipher needs a module. It
		// is the worker itself: see module.Helper.
		Symlink{Path: "/sbin/modprobe", To: "/init"},
		// Kernel messages below error stay off the console: a serial line at 115200
		// baud costs seconds, and the worker's own lines must be seen.
		Setting{Path: "/proc/sys/kernel/printk", Value: "4 4 1 7"},
		// Ctrl-Alt-Del restarts at once. Otherwise the kernel would interrupt its init,
		// which is a panic and half a minute.
		Setting{Path: "/proc/sys/kernel/ctrl-alt-del", Value: "1"},
		Setting{Path: "/etc/hosts", Value: "127.0.0.1 localhost\n::1 localhost\n"},
		Setting{Path: "/proc/sys/kernel/hostname", Value: "rackstrap-worker"},
	}
}

// Firmware is where the firmware's variables are read; its module is loaded first.
func Firmware() []Creator {
	return []Creator{Mount{
		Type: "efivarfs", Target: "/sys/firmware/efi/efivars",
		Flags: unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV | unix.MS_RDONLY,
	}}
}
