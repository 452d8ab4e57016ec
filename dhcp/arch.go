package dhcp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// architecture is what a code of option 93 means. pxe and http are the firmware of a
// client that says PXEClient and of one that says HTTPClient, because some firmware
// sends its PXE code with HTTPClient or the other way round; both are empty where we
// have no boot program.
type architecture struct {
	name      string
	pxe, http hardware.Firmware
}

const (
	archBIOS = 0
	archPi   = 41
)

// architectures is IANA's registry "Processor Architecture Types" (RFC 5970, RFC 4578
// section 2.1), complete as of 2024.
var architectures = map[uint16]architecture{
	archBIOS: {"x86 BIOS", hardware.FirmwareBIOS, ""},
	1:        {name: "NEC PC98"},
	2:        {name: "Itanium"},
	3:        {name: "DEC Alpha"},
	4:        {name: "Arc x86"},
	5:        {name: "Intel Lean Client"},
	6:        {name: "UEFI x86 32-bit"},
	// edk2 sends 7; RFC 4578 had 9 for x64 and 7 for EFI byte code (erratum 4625), and
	// VMware sends that.
	7:  {"UEFI x64", hardware.FirmwareUEFI, hardware.FirmwareHTTP},
	8:  {name: "EFI Xscale"},
	9:  {"UEFI x64 (EBC)", hardware.FirmwareUEFI, hardware.FirmwareHTTP},
	10: {name: "UEFI ARM 32-bit"},
	11: {"UEFI arm64", hardware.FirmwareUEFIARM, hardware.FirmwareHTTPARM},
	12: {name: "PowerPC Open Firmware"},
	13: {name: "PowerPC ePAPR"},
	14: {name: "POWER OPAL v3"},
	15: {name: "UEFI x86 32-bit, HTTP boot"},
	16: {"UEFI x64, HTTP boot", hardware.FirmwareUEFI, hardware.FirmwareHTTP},
	17: {name: "EBC, HTTP boot"},
	18: {name: "UEFI ARM 32-bit, HTTP boot"},
	19: {"UEFI arm64, HTTP boot", hardware.FirmwareUEFIARM, hardware.FirmwareHTTPARM},
	20: {name: "x86 BIOS, HTTP boot"},
	21: {name: "U-Boot ARM 32-bit"},
	// U-Boot on arm64 starts EFI programs with bootefi; what it loads for that is what
	// UEFI loads.
	22:     {"U-Boot arm64", hardware.FirmwareUEFIARM, hardware.FirmwareHTTPARM},
	23:     {name: "U-Boot ARM 32-bit, HTTP boot"},
	24:     {"U-Boot arm64, HTTP boot", hardware.FirmwareUEFIARM, hardware.FirmwareHTTPARM},
	25:     {name: "UEFI RISC-V 32-bit"},
	26:     {name: "UEFI RISC-V 32-bit, HTTP boot"},
	27:     {name: "UEFI RISC-V 64-bit"},
	28:     {name: "UEFI RISC-V 64-bit, HTTP boot"},
	29:     {name: "UEFI RISC-V 128-bit"},
	30:     {name: "UEFI RISC-V 128-bit, HTTP boot"},
	31:     {name: "s390 Basic"},
	32:     {name: "s390 Extended"},
	33:     {name: "UEFI MIPS 32-bit"},
	34:     {name: "UEFI MIPS 64-bit"},
	35:     {name: "UEFI Sunway 32-bit"},
	36:     {name: "UEFI Sunway 64-bit"},
	37:     {name: "UEFI LoongArch 32-bit"},
	38:     {name: "UEFI LoongArch 32-bit, HTTP boot"},
	39:     {name: "UEFI LoongArch 64-bit"},
	40:     {name: "UEFI LoongArch 64-bit, HTTP boot"},
	archPi: {name: "Raspberry Pi"},
}

// archWords names a code for people.
func archWords(code uint16) string {
	if a, ok := architectures[code]; ok {
		return fmt.Sprintf("architecture %d: %s", code, a.name)
	}
	return fmt.Sprintf("architecture %d", code)
}

// pickArch is the first code that has a program of ours; where none has, the first.
func pickArch(codes []uint16) uint16 {
	for _, code := range codes {
		if architectures[code].pxe != "" {
			return code
		}
	}
	if len(codes) > 0 {
		return codes[0]
	}
	return archBIOS
}

// vendorArch reads the code that PXE 2.1 and UEFI put into option 60 too, as in
// PXEClient:Arch:00007:UNDI:003016, for clients that leave option 93 out.
func vendorArch(vendor string) []uint16 {
	parts := strings.Split(vendor, ":")
	if len(parts) < 3 || parts[1] != "Arch" {
		return nil
	}
	n, err := strconv.ParseUint(parts[2], 10, 16)
	if err != nil {
		return nil
	}
	return []uint16{uint16(n)}
}

// isPi reports whether a GUID (option 97) is a Raspberry Pi's. Its ROM says that it is
// an x86 BIOS, and takes files of its own only.
func isPi(guid []byte) bool { return len(guid) > 4 && string(guid[1:4]) == "RPi" }
