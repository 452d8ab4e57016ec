package dhcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

// PacketSocket sends and receives network packets with their Ethernet addresses
// (packet(7)): what the kernel's own sockets cannot send, because the receiver
// does not answer ARP yet, and cannot hear. The kernel makes the Ethernet header.
type PacketSocket struct {
	f  *os.File
	rc syscall.RawConn
}

// OpenPacket opens a packet socket that hears nothing until Hear. in is as in
// Config.In. The error says which capability is missing.
func OpenPacket(in func(func() error) error) (*PacketSocket, error) {
	s := &PacketSocket{}
	err := in(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		s.f = os.NewFile(uintptr(fd), "packet")
		return nil
	})
	if errors.Is(err, unix.EPERM) {
		return nil, errors.New("packet socket: not permitted (run as root, or with CAP_NET_RAW)")
	}
	if err == nil {
		s.rc, err = s.f.SyscallConn()
	}
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	return s, nil
}

// Hear makes the socket receive the packets of one EtherType on the interface
// with that index (0: on any) that filter lets through, also those sent to the
// multicast or further unicast address group where there is one. The filter is classic BPF; offset 0 is the
// network header.
func (s *PacketSocket) Hear(index int, etherType uint16, group hardware.MAC, filter []unix.SockFilter) error {
	return s.control(func(fd int) error {
		// In this order nothing gets in unfiltered.
		prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
			return fmt.Errorf("packet filter: %w", err)
		}
		if group.IsZero() {
			return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(etherType), Ifindex: index})
		}
		member := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: 6}
		if !group.IsMulticast() {
			member.Type = unix.PACKET_MR_UNICAST
		}
		copy(member.Address[:], group[:])
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
			return fmt.Errorf("address %s: %w", group, err)
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(etherType), Ifindex: index})
	})
}

// Receive reads one packet and tells the Ethernet address it came from. It waits;
// Close ends that with an error. ENETDOWN says that the interface is down or gone.
func (s *PacketSocket) Receive(buf []byte) (n int, from hardware.MAC, err error) {
	var sa unix.Sockaddr
	if rerr := s.rc.Read(func(fd uintptr) bool {
		n, sa, err = unix.Recvfrom(int(fd), buf, 0)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	}); rerr != nil {
		return 0, from, rerr
	}
	if ll, ok := sa.(*unix.SockaddrLinklayer); ok && ll.Halen == 6 {
		copy(from[:], ll.Addr[:])
	}
	return n, from, err
}

// Send hands a packet of that EtherType to the interface with that index. A full
// transmit queue is an error: the client will ask again.
func (s *PacketSocket) Send(index int, etherType uint16, to hardware.MAC, packet []byte) error {
	addr := &unix.SockaddrLinklayer{Protocol: networkOrder(etherType), Ifindex: index, Halen: 6}
	copy(addr.Addr[:], to[:])
	return s.control(func(fd int) error { return unix.Sendto(fd, packet, unix.MSG_DONTWAIT, addr) })
}

// Close releases the socket.
func (s *PacketSocket) Close() error { return s.f.Close() }

func (s *PacketSocket) control(f func(fd int) error) error {
	var err error
	if cerr := s.rc.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// networkOrder is a number whose bytes in memory are those of v on the wire.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
