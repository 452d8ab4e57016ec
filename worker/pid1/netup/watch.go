package netup

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// watchLinks calls changed whenever a network card appears, vanishes or changes,
// until ctx is done. What has changed is to be looked up.
func watchLinks(ctx context.Context, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("link watch: %w", err)
	}
	defer unix.Close(fd)
	// The timeout lets us see that ctx has ended.
	timeout := unix.Timeval{Usec: 500_000}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		return fmt.Errorf("link watch: bind: %w", err)
	}
	changed()
	buf := make([]byte, 32<<10)
	for ctx.Err() == nil {
		_, _, err := unix.Recvfrom(fd, buf, 0)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS), err == nil:
			changed()
		default:
			return fmt.Errorf("link watch: %w", err)
		}
	}
	return nil
}
