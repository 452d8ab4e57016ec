package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
)

var allFirmware = []hardware.Firmware{
	hardware.FirmwareNone, hardware.FirmwareBIOS, hardware.FirmwareUEFI, hardware.FirmwareUEFIARM, hardware.FirmwareHTTP,
	hardware.FirmwareHTTPARM, hardware.FirmwareIPXE, hardware.FirmwareIPXEMin, hardware.FirmwareUnknown,
}

// TestProgramsAreAssets: whatever a client is, the boot program that it is told to
// load is one that a complete build has.
func TestProgramsAreAssets(t *testing.T) {
	t.Parallel()
	p := &Place{Server: netip.MustParseAddr("10.0.0.1")}
	mac := hardware.MAC{0x52, 0x54, 0, 0, 0, 1}
	served := append(ipxe.AssetNames(), ProgramDisk, ProgramDiskARM) // the disks are made of assets
	named := map[string]bool{}
	for _, chain := range []hardware.Chain{"", hardware.ChainIPXE, hardware.ChainGRUB} {
		for _, f := range allFirmware {
			for arch := range uint16(64) {
				c := &Class{MAC: mac, Firmware: f, Arch: arch, HTTP: f == hardware.FirmwareHTTP || f == hardware.FirmwareHTTPARM}
				file, reason, _ := bootFile(c, p, &hardware.Boot{Chain: chain, Next: hardware.Next{Target: hardware.TargetWorker}}, Files{HTTPPort: 7080})
				name := strings.TrimPrefix(file, "http://10.0.0.1:7080/ipxe/")
				if file == "" || name == noProgram || name == "script/"+mac.String()+"/auto.ipxe" {
					continue
				}
				if reason != hardware.ReasonBootProgram || !slices.Contains(served, name) {
					t.Errorf("chain %q, %s, architecture %d: %q (%s) is no boot file", chain, f, arch, file, reason)
				}
				named[name] = true
			}
		}
	}
	for _, name := range []string{ProgramBIOS, ProgramUEFI, ProgramShim, ProgramShimARM, ProgramDisk, ProgramDiskARM} {
		if !named[name] {
			t.Errorf("no client is told to load %s", name)
		}
	}
	if slices.Contains(ipxe.AssetNames(), noProgram) {
		t.Errorf("%s is there", noProgram)
	}
}

// TestArchitectures: each code of IANA's registry has a name; it gets a program, or the
// Reason that names it, with either class; the operator's program goes before ours.
func TestArchitectures(t *testing.T) {
	t.Parallel()
	p := &Place{Server: netip.MustParseAddr("10.0.0.1")}
	boot := &hardware.Boot{Next: hardware.Next{Target: hardware.TargetWorker}}
	ours := map[uint16]bool{0: true, 7: true, 9: true, 11: true, 16: true, 19: true, 22: true, 24: true}
	for arch := range uint16(60) {
		for _, vendor := range []string{"PXEClient", "HTTPClient"} {
			c := Class{Vendor: vendor, Arch: arch, HTTP: vendor == "HTTPClient"}
			c.Firmware = firmware(vendor, nil, nil, []uint16{arch}, arch)
			b := *boot
			if a := architectures[arch]; a.pxe == hardware.FirmwareUEFIARM {
				b.Chain = hardware.ChainGRUB
			}
			file, reason, detail := bootFile(&c, p, &b, Files{HTTPPort: 7080})
			want := hardware.ReasonNoProgram
			switch {
			case arch > 41:
				want = hardware.ReasonUnknownFirmware
			case ours[arch] && (arch != 0 || !c.HTTP):
				want = hardware.ReasonBootProgram
			}
			if reason != want || (want != hardware.ReasonBootProgram) != strings.HasPrefix(detail, "architecture ") {
				t.Errorf("%s with architecture %d: %s (%q), want %s", vendor, arch, reason, detail, want)
			}
			if arch <= 41 && !strings.Contains(archWords(arch), ": ") {
				t.Errorf("architecture %d has no name", arch)
			}
			if c.HTTP != strings.HasPrefix(file, "http://10.0.0.1:7080/ipxe/") {
				t.Errorf("%s with architecture %d is told to load %q", vendor, arch, file)
			}
			file, reason, _ = bootFile(&c, p, &b, Files{HTTPPort: 7080, Programs: map[uint16]string{arch: "own.efi"}})
			if reason != hardware.ReasonBootProgram || !strings.HasSuffix(file, "own.efi") {
				t.Errorf("%s with architecture %d and a program of the operator's: %q, %s", vendor, arch, file, reason)
			}
		}
	}
}

// TestOwnProgram: the record's program goes before the operator's for the architecture,
// and neither is for an iPXE that takes the script.
func TestOwnProgram(t *testing.T) {
	t.Parallel()
	p := &Place{Server: netip.MustParseAddr("10.0.0.1"), Hardware: SampleHardware("m1", "52:54:00:00:00:01", "10.0.0.9")}
	p.Hardware.Spec.Netboot.Program = "record.efi"
	files := Files{HTTPPort: 7080, Programs: map[uint16]string{7: "arch.efi"}}
	for _, target := range []hardware.Target{hardware.TargetWorker, hardware.TargetCustom, hardware.TargetDisk} {
		for _, f := range allFirmware {
			c := &Class{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 1}, Firmware: f, Arch: 7, HTTP: f == hardware.FirmwareHTTP}
			b := &hardware.Boot{Chain: hardware.ChainGRUB, Next: hardware.Next{Target: target, Reason: hardware.ReasonProvisioned}}
			file, reason, _ := bootFile(c, p, b, files)
			switch {
			case f == hardware.FirmwareNone:
				if file != "" || reason != "" {
					t.Errorf("an operating system is told to load %q (%s)", file, reason)
				}
			case target == hardware.TargetDisk:
				if reason != hardware.ReasonProvisioned || (file != "") != c.HTTP {
					t.Errorf("%s to its disk: %q, %s", f, file, reason)
				}
			case f == hardware.FirmwareIPXE:
				if reason != hardware.ReasonBootScript || !strings.HasSuffix(file, "/auto.ipxe") {
					t.Errorf("iPXE: %q, %s", file, reason)
				}
			case reason != hardware.ReasonBootProgram || !strings.HasSuffix(file, "record.efi"):
				t.Errorf("%s to %s: %q, %s", f, target, file, reason)
			}
		}
	}
}

// TestProgramLoop: an iPXE without HTTP that asks again after it was sent a program is
// not sent another, whatever the chain and whosever the program.
func TestProgramLoop(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"", "own.efi"} {
		for _, chain := range []hardware.Chain{hardware.ChainIPXE, hardware.ChainGRUB} {
			p := &Place{Server: netip.MustParseAddr("10.0.0.1"), Hardware: SampleHardware("m1", "52:54:00:00:00:01", "10.0.0.9")}
			p.Hardware.Spec.Netboot.Program = own
			c := &Class{Firmware: hardware.FirmwareIPXEMin, Arch: 7}
			b := &hardware.Boot{Chain: chain, Next: hardware.Next{Target: hardware.TargetWorker}}
			if file, reason, _ := bootFile(c, p, b, Files{}); file == "" || reason != hardware.ReasonBootProgram {
				t.Errorf("the first time: %q, %s", file, reason)
			}
			b.Programs, b.Phase = 1, hardware.PhaseAddress
			if _, reason, _ := bootFile(c, p, b, Files{}); reason != hardware.ReasonBootProgram {
				t.Errorf("a repeated packet: %s", reason)
			}
			b.Phase = hardware.PhaseProgram
			if file, reason, _ := bootFile(c, p, b, Files{}); file != "" || reason != hardware.ReasonProgramLoop {
				t.Errorf("after the program was sent: %q, %s", file, reason)
			}
		}
	}
}
