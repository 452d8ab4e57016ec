package module

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Uevent is one message of the kernel about a device (lib/kobject_uevent.c).
type Uevent struct {
	Action string // add, remove, change, bind, …
	Path   string // below /sys
	Vars   map[string]string
}

// ParseUevent reads "add@/devices/…\0KEY=value\0…"; false for anything else, for
// example udev's own messages.
func ParseUevent(b []byte) (Uevent, bool) {
	head, rest, _ := strings.Cut(string(b), "\x00")
	action, path, ok := strings.Cut(head, "@")
	if !ok || action == "" || !strings.HasPrefix(path, "/") {
		return Uevent{}, false
	}
	u := Uevent{Action: action, Path: path, Vars: map[string]string{}}
	for kv := range strings.SplitSeq(rest, "\x00") {
		if k, v, ok := strings.Cut(kv, "="); ok {
			u.Vars[k] = v
		}
	}
	return u, true
}

// Uevents is a subscription to the kernel's device messages.
type Uevents struct{ fd int }

// ListenUevents subscribes. From here on no device is missed, so that the devices
// that are there already can be looked at afterwards.
func ListenUevents() (*Uevents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("uevent socket: %w", err)
	}
	// A rack server with many disks sends thousands within a second.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	// Group 1 is the kernel's own; the timeout lets Run see that ctx has ended.
	timeout := unix.Timeval{Usec: 500_000}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("uevent socket: bind: %w", err)
	}
	return &Uevents{fd: fd}, nil
}

// Run calls f with each message until ctx is done, and closes the subscription.
// lost is called when the kernel had to drop messages: look at all devices again.
func (u *Uevents) Run(ctx context.Context, f func(Uevent), lost func()) error {
	defer unix.Close(u.fd)
	buf := make([]byte, 16<<10)
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(u.fd, buf, 0)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			lost()
			continue
		case err != nil:
			return fmt.Errorf("uevent socket: %w", err)
		}
		// Port 0 is the kernel; any process could send to the group.
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue
		}
		if ev, ok := ParseUevent(buf[:n]); ok {
			f(ev)
		}
	}
	return nil
}
