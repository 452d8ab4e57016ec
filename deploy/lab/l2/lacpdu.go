package l2

import (
	"encoding/binary"
	"errors"
)

// slowProtocols is the address of LACPDUs (IEEE 802.3 annex 57A.3).
var slowProtocols = mac{0x01, 0x80, 0xc2, 0, 0, 0x02}

// The layout of a LACPDU (IEEE 802.1AX-2014, 6.4.2.3).
const (
	lacpSubtype  = 1
	lacpSize     = 110
	tlvActor     = 1
	tlvPartner   = 2
	tlvCollector = 3
	participant  = 20 // length of the TLVs of actor and partner, with type and length
	collector    = 16
)

// State bits of a participant (6.4.2.3).
const (
	lacpActivity = 1 << iota
	lacpTimeout  // short
	lacpAggregation
	lacpSynchronization
	lacpCollecting
	lacpDistributing
	lacpDefaulted
	lacpExpired
)

// lacpInfo is what a LACPDU says of a port.
type lacpInfo struct {
	systemPriority uint16
	system         mac
	key            uint16
	portPriority   uint16
	port           uint16
	state          byte
}

// same reports whether both are one port of one aggregation, and both or neither may
// be aggregated; the other bits of the state are not compared (6.4.9, recordPDU).
func (i lacpInfo) same(o lacpInfo) bool {
	aggregate := (i.state^o.state)&lacpAggregation == 0
	i.state, o.state = 0, 0
	return i == o && aggregate
}

func (i lacpInfo) has(bit byte) bool { return i.state&bit != 0 }

func (i lacpInfo) appendTo(b []byte, kind byte) []byte {
	b = append(b, kind, participant)
	b = binary.BigEndian.AppendUint16(b, i.systemPriority)
	b = append(b, i.system[:]...)
	b = binary.BigEndian.AppendUint16(b, i.key)
	b = binary.BigEndian.AppendUint16(b, i.portPriority)
	b = binary.BigEndian.AppendUint16(b, i.port)
	return append(b, i.state, 0, 0, 0)
}

func lacpInfoOf(b []byte) lacpInfo {
	return lacpInfo{
		systemPriority: binary.BigEndian.Uint16(b[2:]), system: mac(b[4:10]), key: binary.BigEndian.Uint16(b[10:]),
		portPriority: binary.BigEndian.Uint16(b[12:]), port: binary.BigEndian.Uint16(b[14:]), state: b[16],
	}
}

// lacpFrame is the frame with a LACPDU.
func lacpFrame(actor, partner lacpInfo) []byte {
	b := append(make([]byte, 0, headerSize+lacpSize), slowProtocols[:]...)
	b = append(b, actor.system[:]...)
	b = binary.BigEndian.AppendUint16(b, typeSlow)
	b = append(b, lacpSubtype, 1)
	b = actor.appendTo(b, tlvActor)
	b = partner.appendTo(b, tlvPartner)
	b = append(b, tlvCollector, collector)
	return append(b, make([]byte, headerSize+lacpSize-len(b))...)
}

var errNotLACP = errors.New("not a LACPDU")

// parseLACP reads a frame. Versions above 1 and what follows the first two TLVs are
// not looked at (6.4.2.4).
func parseLACP(frame []byte) (actor, partner lacpInfo, err error) {
	if len(frame) < headerSize+lacpSize || etherType(frame) != typeSlow || frame[headerSize] != lacpSubtype {
		return actor, partner, errNotLACP
	}
	b := frame[headerSize+2:]
	if b[0] != tlvActor || b[1] != participant || b[participant] != tlvPartner || b[participant+1] != participant {
		return actor, partner, errNotLACP
	}
	return lacpInfoOf(b), lacpInfoOf(b[participant:]), nil
}
