package dhcp

import (
	"fmt"
	"net/netip"

	"github.com/rackstrap/rackstrap/hardware"
)

// The programs DHCP can name, each served by TFTP and HTTP.
const (
	ProgramBIOS    = "undionly.kpxe"
	ProgramUEFI    = "snponly.efi"
	ProgramShim    = "shimx64.efi"
	ProgramShimARM = "shimaa64.efi"
	// ProgramDisk and ProgramDiskARM are disks with shim and GRUB that UEFI HTTP boot
	// loads into memory: the signed GRUB cannot take its files by HTTP, and what shim
	// loads by HTTP would have to (deploy/docs/adr/0017-secure-boot-over-http.md).
	ProgramDisk    = "shimx64.img"
	ProgramDiskARM = "shimaa64.img"
)

// programs are the boot programs by the chain and by what the firmware is.
var programs = map[hardware.Chain]map[hardware.Firmware]string{
	hardware.ChainIPXE: {
		hardware.FirmwareBIOS: ProgramBIOS,
		hardware.FirmwareUEFI: ProgramUEFI,
		hardware.FirmwareHTTP: ProgramUEFI,
	},
	hardware.ChainGRUB: {
		hardware.FirmwareUEFI:    ProgramShim,
		hardware.FirmwareUEFIARM: ProgramShimARM,
		hardware.FirmwareHTTP:    ProgramDisk,
		hardware.FirmwareHTTPARM: ProgramDiskARM,
	},
}

// noProgram is a URL's last part that is never there.
const noProgram = "local-disk"

// bootFile is the one place that says what a netbooting client is told to load:
// a TFTP name, a URL, or nothing, and why; detail, where there is any, completes the
// Reason. Clients that load nothing must go on to their next boot device at once, not
// after the minute of retries that silence costs:
//
//   - iPXE takes an address without a file as "nothing to boot" and returns to the
//     firmware;
//   - PXE firmware is offered a menu of one entry, the local disk (bootOptions);
//     edk2 does not accept an address alone and would ask again until it gives up;
//   - UEFI HTTP boot has no such menu, but a file that is not there ends it.
func bootFile(c *Class, p *Place, b *hardware.Boot, f Files) (file string, r hardware.Reason, detail string) {
	server := netip.AddrPortFrom(p.Server, f.HTTPPort)
	program, r, detail := "", b.Next.Reason, ""
	switch {
	case !c.Netboots():
		return "", "", ""
	case !b.Next.Netboots():
	case c.Firmware == hardware.FirmwareIPXE:
		return fmt.Sprintf("http://%s/ipxe/script/%s/auto.ipxe", server, c.MAC), hardware.ReasonBootScript, ""
	case c.Firmware == hardware.FirmwareIPXEMin && b.Programs > 0 && b.Phase >= hardware.PhaseProgram:
		// A repeated packet before the program was fetched is no loop.
		r = hardware.ReasonProgramLoop
	default:
		program, r, detail = bootProgram(c, p, b, f)
	}
	if !c.HTTP {
		return program, r, detail
	}
	if program == "" {
		program = noProgram
	}
	return fmt.Sprintf("http://%s/ipxe/%s", server, program), r, detail
}

// bootProgram chooses the program: the record's own, the operator's for the
// architecture, or ours for the chain that the boot takes.
func bootProgram(c *Class, p *Place, b *hardware.Boot, f Files) (program string, r hardware.Reason, detail string) {
	if p.Hardware != nil && p.Hardware.Spec.Netboot.Program != "" {
		return p.Hardware.Spec.Netboot.Program, hardware.ReasonBootProgram, ""
	}
	if own := f.Programs[c.Arch]; own != "" && !c.NoArch {
		return own, hardware.ReasonBootProgram, ""
	}
	chain, fw := b.Chain, c.Firmware
	if chain == "" {
		chain = hardware.ChainIPXE // a boot of before there was another
	}
	a, known := architectures[c.Arch]
	if fw == hardware.FirmwareIPXEMin {
		// iPXE sends the architecture it was built for in option 93. It starts what the
		// firmware would.
		if fw = a.pxe; programs[chain][fw] == "" {
			chain = hardware.ChainGRUB
		}
	}
	switch program = programs[chain][fw]; {
	case c.NoArch:
		return "", hardware.ReasonUnknownFirmware, "HTTPClient without an architecture"
	case !known:
		return "", hardware.ReasonUnknownFirmware, archWords(c.Arch)
	case program != "" && chain == hardware.ChainGRUB && b.Next.Target == hardware.TargetCustom:
		return "", hardware.ReasonOwnNeedsIPXE, archWords(c.Arch)
	case program != "":
		return program, hardware.ReasonBootProgram, ""
	}
	return "", hardware.ReasonNoProgram, archWords(c.Arch)
}

// bootOptions writes the boot file into the reply: the header fields, which
// U-Boot and old ROMs read alone, and options 66 and 67, which others prefer.
func (r *reply) bootOptions(c *Class, file string, server netip.Addr) {
	if c.IPXE() {
		// iPXE waits about two seconds for a proxyDHCP offer unless it is told that
		// there will be none.
		r.put(optIPXE, ipxeNoProxy, 1, 1)
	}
	if file == "" {
		if !c.IPXE() {
			r.localBoot()
		}
		return
	}
	cString := false
	switch {
	case c.HTTP:
		// UEFI 2.10 section 24.7.3.1: an offer without it is not for HTTP boot.
		r.put(optVendorClass, []byte("HTTPClient")...)
	case c.Firmware == hardware.FirmwareBIOS:
		// With PXEClient in our answer a ROM looks at option 43, and without bit 3 of
		// sub-option 6 it would go looking for boot servers on port 4011.
		r.put(optVendorClass, []byte("PXEClient")...)
		r.put(optVendorInfo, pxeDiscovery, 1, pxeDiscoveryBypass, 255)
		cString = true
	default:
		// UEFI PXE gets neither 60 nor 43: edk2 takes an offer with a boot file as it
		// is, and with PXEClient it would ask port 4011 for a boot server.
	}
	r.bootFrom(file, server, cString)
}

// bootFrom names the file and the server. ROMs read options 66 and 67 as C strings.
func (r *reply) bootFrom(file string, server netip.Addr, cString bool) {
	r.siaddr = server
	if len(file) < fileSize {
		r.file = file
	}
	name, next := []byte(file), []byte(server.String())
	if cString {
		name, next = append(name, 0), append(next, 0)
	}
	r.put(optBootFile, name...)
	r.put(optTFTPServer, next...)
}

// localBoot sends PXE firmware to its next boot device: a boot menu (PXE 2.1,
// table 2-1: sub-option 9) with the one entry of type 0, "local boot", taken at
// once because the prompt's time (sub-option 10) is 0.
func (r *reply) localBoot() {
	const entry, prompt = "local disk", "booting from the local disk"
	v := []byte{pxeDiscovery, 1, pxeDiscoverNobody}
	v = append(v, pxeMenu, 3+byte(len(entry)), 0, 0, byte(len(entry)))
	v = append(v, entry...)
	v = append(v, pxePrompt, 1+byte(len(prompt)), 0)
	v = append(v, prompt...)
	r.put(optVendorClass, []byte("PXEClient")...)
	r.put(optVendorInfo, append(v, 255)...)
}
