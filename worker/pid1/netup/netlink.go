package netup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// request is one rtnetlink message (rtnetlink(7)) in the machine's byte order.
type request struct {
	kind  uint16
	flags uint16
	body  []byte
}

// attr appends one attribute: length, type, value, padded to four bytes.
func (r *request) attr(kind uint16, value []byte) {
	r.body = binary.NativeEndian.AppendUint16(r.body, uint16(unix.SizeofRtAttr+len(value)))
	r.body = binary.NativeEndian.AppendUint16(r.body, kind)
	r.body = append(r.body, value...)
	for len(r.body)%4 != 0 {
		r.body = append(r.body, 0)
	}
}

func (r *request) bytes() []byte {
	var b []byte
	b = binary.NativeEndian.AppendUint32(b, uint32(unix.SizeofNlMsghdr+len(r.body)))
	b = binary.NativeEndian.AppendUint16(b, r.kind)
	b = binary.NativeEndian.AppendUint16(b, r.flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = binary.NativeEndian.AppendUint32(b, 1) // sequence
	b = binary.NativeEndian.AppendUint32(b, 0) // port: the kernel's choice
	return append(b, r.body...)
}

// linkUp sets a card up, with an MTU unless that is 0.
func linkUp(index, mtu int) *request {
	r := &request{kind: unix.RTM_NEWLINK}
	r.body = append(r.body, unix.AF_UNSPEC, 0, 0, 0)
	r.body = binary.NativeEndian.AppendUint32(r.body, uint32(index))
	r.body = binary.NativeEndian.AppendUint32(r.body, unix.IFF_UP) // flags
	r.body = binary.NativeEndian.AppendUint32(r.body, unix.IFF_UP) // which of them change
	if mtu > 0 {
		r.attr(unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, uint32(mtu)))
	}
	return r
}

// address adds an address to a card, or takes it away.
func address(index int, p netip.Prefix, add bool) *request {
	r := &request{kind: unix.RTM_DELADDR}
	if add {
		r.kind, r.flags = unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE
	}
	r.body = append(r.body, unix.AF_INET, byte(p.Bits()), 0, unix.RT_SCOPE_UNIVERSE)
	r.body = binary.NativeEndian.AppendUint32(r.body, uint32(index))
	a := p.Addr().As4()
	r.attr(unix.IFA_LOCAL, a[:])
	r.attr(unix.IFA_ADDRESS, a[:])
	if add && p.Bits() < 31 {
		b := broadcast(p).As4()
		r.attr(unix.IFA_BROADCAST, b[:])
	}
	return r
}

// route adds a route through a card. A gateway outside the card's own network (a
// /32 lease) is believed to be on the link.
func route(index int, rt Route, own netip.Prefix) *request {
	r := &request{kind: unix.RTM_NEWROUTE, flags: unix.NLM_F_CREATE | unix.NLM_F_REPLACE}
	scope, flags := byte(unix.RT_SCOPE_UNIVERSE), uint32(0)
	switch {
	case !rt.Via.IsValid():
		scope = unix.RT_SCOPE_LINK
	case !own.Contains(rt.Via):
		flags = unix.RTNH_F_ONLINK
	}
	r.body = append(r.body, unix.AF_INET, byte(rt.To.Bits()), 0, 0,
		unix.RT_TABLE_MAIN, unix.RTPROT_DHCP, scope, unix.RTN_UNICAST)
	r.body = binary.NativeEndian.AppendUint32(r.body, flags)
	if rt.To.Bits() > 0 {
		d := rt.To.Addr().As4()
		r.attr(unix.RTA_DST, d[:])
	}
	if rt.Via.IsValid() {
		g := rt.Via.As4()
		r.attr(unix.RTA_GATEWAY, g[:])
	}
	r.attr(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(index)))
	return r
}

func broadcast(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

// do sends one request and waits for the kernel's verdict, a unix.Errno.
func do(r *request) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("rtnetlink socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, r.bytes(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("rtnetlink: %w", err)
	}
	buf := make([]byte, 8<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("rtnetlink: %w", err)
		}
		return verdict(buf[:n])
	}
}

// verdict reads the kernel's answer: NLMSG_ERROR with a negative errno, or 0.
func verdict(b []byte) error {
	if len(b) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return errors.New("rtnetlink: the kernel's answer is no verdict")
	}
	if code := int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
