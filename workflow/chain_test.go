package workflow

import (
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestPickChain(t *testing.T) {
	t.Parallel()
	netboot := hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeWork}
	boot := func(c hardware.Chain, p hardware.Phase, fw hardware.Firmware) *hardware.Boot {
		return &hardware.Boot{Chain: c, Phase: p, Firmware: fw, Next: netboot}
	}
	record := func(s hardware.SecureBoot, facts string) *hardware.Hardware {
		h := &hardware.Hardware{Spec: hardware.Spec{Netboot: hardware.Netboot{SecureBoot: s}}, Status: hardware.Status{State: hardware.StateAvailable}}
		if facts != "" {
			h.Facts = &hardware.Facts{SecureBoot: facts}
		}
		return h
	}
	const uefi, web = hardware.FirmwareUEFI, hardware.FirmwareHTTP
	const ipxe, grub = hardware.ChainIPXE, hardware.ChainGRUB
	took := boot(ipxe, hardware.PhaseProgram, uefi)
	for name, tc := range map[string]struct {
		h       *hardware.Hardware
		fw      hardware.Firmware
		before  *hardware.Boot
		proxied bool
		want    hardware.Chain
	}{
		"BIOS":                        {nil, hardware.FirmwareBIOS, nil, false, ipxe},
		"iPXE":                        {record("on", ""), hardware.FirmwareIPXE, nil, false, ipxe},
		"arm64":                       {record("off", ""), hardware.FirmwareUEFIARM, nil, false, grub},
		"arm64 by HTTP":               {nil, hardware.FirmwareHTTPARM, nil, true, grub},
		"a stranger":                  {nil, uefi, nil, false, grub},
		"a stranger, proxied":         {nil, uefi, nil, true, ipxe},
		"a stranger by HTTP":          {nil, web, nil, false, ipxe},
		"accepted":                    {record("", ""), uefi, nil, false, ipxe},
		"the record says on":          {record("on", "off"), uefi, nil, true, grub},
		"the record says off":         {record("off", "on"), uefi, nil, false, ipxe},
		"the facts say on":            {record("auto", "on"), web, nil, false, grub},
		"iPXE was not started":        {record("", "off"), uefi, took, false, grub},
		"shim was not started":        {record("", ""), uefi, boot(grub, hardware.PhaseProgram, uefi), false, ipxe},
		"GRUB stopped, proxied":       {nil, uefi, boot(grub, hardware.PhaseProgram, uefi), true, ipxe},
		"another firmware before":     {record("", ""), web, took, false, ipxe},
		"it was sent to its disk":     {record("", ""), uefi, &hardware.Boot{Chain: ipxe, Phase: hardware.PhaseProgram, Firmware: uefi}, false, ipxe},
		"as it went the last time":    {record("", ""), uefi, boot(grub, hardware.PhaseKernel, uefi), false, grub},
		"nothing came the last time":  {record("", ""), uefi, boot(grub, 0, uefi), false, ipxe},
		"the record comes before all": {record("off", ""), uefi, took, false, ipxe},
	} {
		if got, why := PickChain(tc.h, tc.fw, tc.before, tc.proxied); got != tc.want || got == grub && why == "" {
			t.Errorf("%s: %s (%q), want %s", name, got, why, tc.want)
		}
	}
}
