package dhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

// rawSocket sends IPv4 packets to Ethernet addresses on any interface. It never
// receives: its protocol is 0.
type rawSocket struct{ fd int }

func openRaw(in func(func() error) error) (*rawSocket, error) {
	r := &rawSocket{}
	err := in(func() (err error) {
		r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if errors.Is(err, unix.EPERM) {
		return nil, errors.New("packet socket: not permitted (run as root, or with CAP_NET_RAW)")
	}
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	return r, nil
}

// send hands packet to the interface with that index. A full transmit queue is
// an error: the client will ask again.
func (r *rawSocket) send(index int, to hardware.MAC, packet []byte) error {
	addr := &unix.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff}),
		Ifindex:  index,
		Halen:    6,
	}
	copy(addr.Addr[:], to[:])
	return unix.Sendto(r.fd, packet, unix.MSG_DONTWAIT, addr)
}

// Close releases the socket.
func (r *rawSocket) Close() error { return unix.Close(r.fd) }

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
