package l2

import (
	"bytes"
	"encoding/binary"
)

// Ports and message types of what a ROM speaks: DHCP (RFC 2131), PXE's boot server,
// TFTP (RFC 1350, 2347).
const (
	portDHCP = 67
	portPXE  = 4011
	portTFTP = 69

	tftpRead = 1
	tftpData = 3
	tftpAck  = 4
	tftpOAck = 6

	optionsOffset = 240
	optPad        = 0
	optUserClass  = 77
	optIPXE       = 175
	optEnd        = 255
)

// plainPXE has an iPXE in a ROM pass for a ROM that is none: its marks are taken out
// of its DHCP packets until it has fetched a file by TFTP, which it then starts. A
// ROM in QEMU is always iPXE; so undionly.kpxe runs over one as it does elsewhere.
type plainPXE struct {
	client  uint16 // the port that the ROM fetches its file with; 0: none
	size    int    // of a full block
	last    uint16 // number of the last block, where ended
	ended   bool   // the last block was sent
	fetched bool   // and acknowledged: what follows is not the ROM
}

// fromClient returns a frame of the machine as the network gets it. The given one is
// not changed.
func (p *plainPXE) fromClient(frame []byte) []byte {
	d, ok := parseUDP(frame)
	if !ok || p.fetched {
		return frame
	}
	switch {
	case d.to == portDHCP || d.to == portPXE:
		return withoutIPXE(frame, d)
	case d.to == portTFTP && d.opcode() == tftpRead:
		*p = plainPXE{client: d.from, size: 512}
	case d.from == p.client && d.opcode() == tftpAck && len(d.data) >= 4:
		p.fetched = p.ended && binary.BigEndian.Uint16(d.data[2:]) == p.last
	}
	return frame
}

// toClient looks at a frame to the machine.
func (p *plainPXE) toClient(frame []byte) {
	if p.client == 0 || p.fetched {
		return
	}
	d, ok := parseUDP(frame)
	if !ok || d.to != p.client {
		return
	}
	switch d.opcode() {
	case tftpOAck:
		p.size = blockSize(d.data[2:])
	case tftpData:
		if len(d.data) >= 4 && len(d.data)-4 < p.size {
			p.last, p.ended = binary.BigEndian.Uint16(d.data[2:]), true
		}
	}
}

// blockSize is what an option acknowledgement says, 512 if nothing.
func blockSize(options []byte) int {
	words := bytes.Split(options, []byte{0})
	for i := 0; i+1 < len(words); i += 2 {
		if bytes.EqualFold(words[i], []byte("blksize")) {
			n := 0
			for _, c := range words[i+1] {
				n = n*10 + int(c-'0')
			}
			return n
		}
	}
	return 512
}

// datagram is a UDP datagram in a frame.
type datagram struct {
	from, to uint16
	at       int // of the UDP header
	data     []byte
}

func (d datagram) opcode() uint16 {
	if len(d.data) < 2 {
		return 0
	}
	return binary.BigEndian.Uint16(d.data)
}

// parseUDP finds a UDP datagram that is whole in its IPv4 packet.
func parseUDP(frame []byte) (d datagram, ok bool) {
	if len(frame) < headerSize+20 || etherType(frame) != typeIPv4 {
		return d, false
	}
	ip := frame[headerSize:]
	head, total := int(ip[0]&0xf)*4, int(binary.BigEndian.Uint16(ip[2:]))
	fragment := binary.BigEndian.Uint16(ip[6:]) & 0x3fff
	if head < 20 || total < head+8 || total > len(ip) || ip[9] != 17 || fragment != 0 {
		return d, false
	}
	udp := ip[head:total]
	size := int(binary.BigEndian.Uint16(udp[4:]))
	if size < 8 || size > len(udp) {
		return d, false
	}
	return datagram{binary.BigEndian.Uint16(udp), binary.BigEndian.Uint16(udp[2:]), headerSize + head, udp[8:size]}, true
}

// withoutIPXE returns a copy of a DHCP frame without the options that only iPXE
// sends; padding keeps its length.
func withoutIPXE(frame []byte, d datagram) []byte {
	if len(d.data) < optionsOffset {
		return frame
	}
	kept := make([]byte, 0, len(d.data))
	kept = append(kept, d.data[:optionsOffset]...)
	for o := d.data[optionsOffset:]; len(o) > 0 && o[0] != optEnd; {
		n := 1
		if o[0] != optPad {
			if len(o) < 2 || len(o) < 2+int(o[1]) {
				return frame
			}
			n = 2 + int(o[1])
		}
		if o[0] != optUserClass && o[0] != optIPXE {
			kept = append(kept, o[:n]...)
		}
		o = o[n:]
	}
	if len(kept) < len(d.data) {
		kept = append(kept, optEnd)
	}
	out := bytes.Clone(frame)
	data := out[d.at+8:][:len(d.data)]
	clear(data[copy(data, kept):])
	udpChecksum(out, d.at, 8+len(data))
	return out
}

// udpChecksum writes the checksum of the datagram at that place (RFC 768).
func udpChecksum(frame []byte, at, size int) {
	udp := frame[at : at+size]
	udp[6], udp[7] = 0, 0
	sum := uint32(17) + uint32(size) // of the pseudo header
	add := func(b []byte) {
		for ; len(b) > 1; b = b[2:] {
			sum += uint32(binary.BigEndian.Uint16(b))
		}
		if len(b) == 1 {
			sum += uint32(b[0]) << 8
		}
	}
	add(frame[headerSize+12 : headerSize+20]) // source and destination address
	add(udp)
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	if sum = ^sum & 0xffff; sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], uint16(sum))
}
