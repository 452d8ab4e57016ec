package dhcp

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openWatch subscribes to changes of links and IPv4 addresses (rtnetlink(7)).
func openWatch(in func(func() error) error) (*os.File, error) {
	var f *os.File
	err := in(func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrNetlink{
			Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR,
		}); err != nil {
			_ = unix.Close(fd)
			return err
		}
		f = os.NewFile(uintptr(fd), "rtnetlink")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch of interfaces: %w", err)
	}
	return f, nil
}

// watch reads every interface anew when the kernel says that one changed; what
// exactly changed is not worth parsing.
func (s *Server) watch(ctx context.Context, f *os.File) {
	buf := make([]byte, 64<<10)
	for {
		// ENOBUFS says that notices were lost, which is a notice too.
		if _, err := f.Read(buf); err != nil && (ctx.Err() != nil || !errors.Is(err, unix.ENOBUFS)) {
			return
		}
		for _, p := range s.ports {
			p.refresh()
		}
	}
}
