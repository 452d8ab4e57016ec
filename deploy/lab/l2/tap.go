package l2

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTAP makes a TAP interface of that name in the network namespace of the calling
// thread. It goes away when it is closed. It needs root.
func OpenTAP(name string) (Frames, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Frames{}, fmt.Errorf("/dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return Frames{}, fmt.Errorf("make interface %s: %w", name, err)
	}
	return Frames{os.NewFile(uintptr(fd), name)}, nil
}
