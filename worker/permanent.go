package worker

import (
	"encoding/binary"
	"syscall"

	"github.com/rackstrap/rackstrap/hardware"
	"golang.org/x/sys/unix"
)

// permanentMACs fills in the address that each card was made with, where it has another.
// The kernel says it in no file; what cannot be asked is left out.
func permanentMACs(nics []hardware.NICFact) {
	rib, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return
	}
	links := parseLinks(rib)
	for i := range nics {
		if m := links[nics[i].Name]; m != nics[i].MAC {
			nics[i].Permanent = m
		}
	}
}

// parseLinks reads the permanent addresses of an answer to RTM_GETLINK (rtnetlink(7)),
// by interface name.
func parseLinks(rib []byte) map[string]hardware.MAC {
	msgs, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil
	}
	out := map[string]hardware.MAC{}
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWLINK || len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		var name string
		var mac hardware.MAC
		for b := m.Data[unix.SizeofIfInfomsg:]; len(b) >= unix.SizeofRtAttr; {
			size := int(binary.NativeEndian.Uint16(b))
			if size < unix.SizeofRtAttr || size > len(b) {
				break
			}
			value := b[unix.SizeofRtAttr:size]
			switch binary.NativeEndian.Uint16(b[2:]) {
			case unix.IFLA_IFNAME:
				name = unix.ByteSliceToString(value)
			case unix.IFLA_PERM_ADDRESS:
				if len(value) == len(mac) {
					mac = hardware.MAC(value)
				}
			}
			b = b[min((size+3)&^3, len(b)):]
		}
		if name != "" && !mac.IsZero() {
			out[name] = mac
		}
	}
	return out
}
