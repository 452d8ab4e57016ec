package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
)

// TestProgramsAreAssets: whatever a client is, the boot program that it is told to
// load is one that a complete build has.
func TestProgramsAreAssets(t *testing.T) {
	t.Parallel()
	server := netip.MustParseAddrPort("10.0.0.1:7080")
	mac := hardware.MAC{0x52, 0x54, 0, 0, 0, 1}
	firmware := []hardware.Firmware{
		hardware.FirmwareNone, hardware.FirmwareBIOS, hardware.FirmwareUEFI, hardware.FirmwareUEFIARM, hardware.FirmwareHTTP,
		hardware.FirmwareHTTPARM, hardware.FirmwareIPXE, hardware.FirmwareIPXEMin, hardware.FirmwareUnknown,
	}
	named := map[string]bool{}
	for _, f := range firmware {
		for arch := range uint16(64) {
			c := &Class{MAC: mac, Firmware: f, Arch: arch}
			file, reason := bootFile(c, &hardware.Boot{Next: hardware.Next{Target: hardware.TargetWorker}}, server)
			name := strings.TrimPrefix(file, "http://10.0.0.1:7080/ipxe/")
			if file == "" || name == "script/"+mac.String()+"/auto.ipxe" {
				continue
			}
			if reason != hardware.ReasonBootProgram || !slices.Contains(ipxe.AssetNames(), name) {
				t.Errorf("%s, architecture %d: %q (%s) is no boot file", f, arch, file, reason)
			}
			named[name] = true
		}
	}
	for _, p := range []string{ProgramBIOS, ProgramUEFI} {
		if !named[p] {
			t.Errorf("no client is told to load %s", p)
		}
	}
	if slices.Contains(ipxe.AssetNames(), noProgram) {
		t.Errorf("%s is there", noProgram)
	}
}
