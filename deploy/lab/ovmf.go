package lab

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"unicode/utf16"
)

// QEMU's bootindex would be simple, but OVMF takes it for the card as a whole:
// PXE and HTTP, IPv4 and IPv6, a minute of silence each, all before the disk.
// So a machine that boots the network first gets what its owner would choose
// in the firmware's menu: PXE over IPv4, or HTTP boot over IPv4, at the head of
// the boot order. OVMF appends what else it finds at every start, disks before
// networks. AAVMF is the same code on arm64.

// Sizes and values from edk2: MdeModulePkg/Include/Guid/VariableFormat.h and
// MdePkg/Include/Pi/PiFirmwareVolume.h.
const (
	volumeHeaderSize = 0x48
	storeHeaderSize  = 28
	variableStart    = 0x55aa
	variableAdded    = 0x3f
	variableAttrs    = 7 // non-volatile, boot service and runtime access
	authVariableGUID = "782cf3aa7b949a43a1802e144ec37792"
	globalVariable   = "61dfe48bca93d211aa0d00e098032b8c" // gEfiGlobalVariableGuid
	autoCreatedGUID  = "4eac0881119f594d850ee21a522c59b2" // mBmAutoCreateBootOptionGuid
	nicSlot          = 3                                  // the card's place on the PCI bus
)

// formatted is an empty variable store of AAVMF in a flash of size bytes: the volume
// with its block map and checksum, the store, and erased flash up to the volume's end.
func formatted(size int) []byte {
	const volume = 0xc0000 // of it 0x40000 for variables, as much again twice to write safely
	out := make([]byte, size)
	for i := range out[:volume] {
		out[i] = 0xff
	}
	copy(out, unhex("000000000000000000000000000000008d2bf1ff96768b4ca9852747075b4f5000000c00000000005f465648360e00004800f8f80000000200010000000004000000000000000000"))
	copy(out[volumeHeaderSize:], unhex(authVariableGUID+"b8ff03005afe000000000000"))
	return out
}

// netbootFirst returns a copy of a variable store in which the network over IPv4 on
// the card with this address is the first boot option, by PXE or by HTTP as from says.
func netbootFirst(store []byte, mac net.HardwareAddr, from BootFrom) ([]byte, error) {
	vars, err := readStore(store)
	if err != nil {
		return nil, err
	}
	number := vars.freeOption()
	order := binary.LittleEndian.AppendUint16(nil, number)
	order = append(order, vars.data["BootOrder"]...)
	return vars.with("BootOrder", variable(optionName(number), netOption(mac, from)), variable("BootOrder", order))
}

// variable is an AUTHENTICATED_VARIABLE_HEADER with name and data, padded to the
// next multiple of four.
func variable(name string, data []byte) []byte {
	text := utf16z(name)
	b := binary.LittleEndian.AppendUint16(nil, variableStart)
	b = append(b, variableAdded, 0)
	b = binary.LittleEndian.AppendUint32(b, variableAttrs)
	b = append(b, make([]byte, 8+16+4)...) // counter, time and key of authenticated variables
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, unhex(globalVariable)...)
	b = append(append(b, text...), data...)
	for len(b)%4 != 0 {
		b = append(b, 0xff)
	}
	return b
}

// netOption is the EFI_LOAD_OPTION that OVMF itself would make for PXE or HTTP over
// IPv4, so that it knows it again and makes no second one.
func netOption(mac net.HardwareAddr, from BootFrom) []byte {
	path := unhex("02010c00d041030a00000000")               // PciRoot(0x0)
	path = append(path, 0x01, 0x01, 0x06, 0x00, 0, nicSlot) // Pci(slot,0)
	path = append(path, 0x03, 0x0b, 0x25, 0x00)             // MAC(address,0x1)
	path = append(append(path, mac...), make([]byte, 32-len(mac))...)
	path = append(path, 1)
	path = append(append(path, 0x03, 0x0c, 0x1b, 0x00), make([]byte, 23)...) // IPv4(), by DHCP
	kind := "PXE"
	if from == fromHTTP {
		kind = "HTTP"
		path = append(path, 0x03, 0x18, 0x04, 0x00) // Uri(), from DHCP
	}
	path = append(path, 0x7f, 0xff, 0x04, 0x00)
	b := binary.LittleEndian.AppendUint32(nil, 1) // LOAD_OPTION_ACTIVE
	b = binary.LittleEndian.AppendUint16(b, uint16(len(path)))
	b = append(b, utf16z(fmt.Sprintf("UEFI %sv4 (MAC:%s)", kind, strings.ToUpper(hex.EncodeToString(mac))))...)
	return append(append(b, path...), unhex(autoCreatedGUID)...)
}

func utf16z(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s + "\x00")) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // unreachable: the texts are constants of this file
	}
	return b
}
