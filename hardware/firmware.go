package hardware

// Firmware is what a netbooting client is, from DHCP options 60, 77, 93 and 175.
type Firmware string

// The firmware classes.
const (
	FirmwareNone    Firmware = ""                // not netbooting: an OS or our worker
	FirmwareBIOS    Firmware = "bios-pxe"        // arch 0
	FirmwareUEFI    Firmware = "uefi-pxe"        // arch 7, 9
	FirmwareUEFIARM Firmware = "uefi-pxe-arm64"  // arch 11
	FirmwareHTTP    Firmware = "uefi-http"       // arch 16, class HTTPClient
	FirmwareHTTPARM Firmware = "uefi-http-arm64" // arch 19
	FirmwareIPXE    Firmware = "ipxe"            // any iPXE that can fetch over HTTP
	FirmwareIPXEMin Firmware = "ipxe-nohttp"     // an iPXE that cannot
	FirmwareUnknown Firmware = "unknown"         // netboots, and we have no boot program for its architecture
)

// Arch is the architecture of the firmware's processor, as Debian names it; empty where
// the firmware does not tell.
func (f Firmware) Arch() string {
	switch f {
	case FirmwareUEFIARM, FirmwareHTTPARM:
		return "arm64"
	case FirmwareBIOS, FirmwareUEFI, FirmwareHTTP:
		return "amd64"
	}
	return ""
}

// Chain is how a firmware is led to our kernel.
type Chain string

// The chains.
const (
	// ChainIPXE: our iPXE, which takes a script and the kernel over HTTP.
	ChainIPXE Chain = "ipxe"
	// ChainGRUB: shim and GRUB as the distribution signed them, which take everything
	// over TFTP. It is the way under Secure Boot, and the only one on arm64.
	ChainGRUB Chain = "grub"
)
