package workflow

import (
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestPickChain(t *testing.T) {
	t.Parallel()
	const uefi, http, ipxe, grub = hardware.FirmwareUEFI, hardware.FirmwareHTTP, hardware.ChainIPXE, hardware.ChainGRUB
	record := func(say hardware.SecureBoot, facts string) *hardware.Hardware {
		h := &hardware.Hardware{Spec: hardware.Spec{Netboot: hardware.Netboot{SecureBoot: say}}, Status: hardware.Status{State: hardware.StateAvailable}}
		if facts != "" {
			h.Facts = &hardware.Facts{SecureBoot: facts}
		}
		return h
	}
	before := func(fw hardware.Firmware, c hardware.Chain, p hardware.Phase) *hardware.Boot {
		return &hardware.Boot{Firmware: fw, Chain: c, Phase: p, Next: hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeWork}}
	}
	for name, tt := range map[string]struct {
		h      *hardware.Hardware
		fw     hardware.Firmware
		before *hardware.Boot
		want   hardware.Chain
	}{
		"BIOS":                              {record("on", "on"), hardware.FirmwareBIOS, nil, ipxe},
		"arm64":                             {record("off", "off"), hardware.FirmwareUEFIARM, nil, grub},
		"arm64 by HTTP":                     {record("", ""), hardware.FirmwareHTTPARM, nil, grub},
		"the record says on":                {record("on", "off"), uefi, nil, grub},
		"the record says off":               {record("off", "on"), uefi, nil, ipxe},
		"the facts say on":                  {record("auto", "on"), uefi, nil, grub},
		"the facts say off":                 {record("", "off"), http, nil, ipxe},
		"nobody knows the machine":          {nil, uefi, nil, grub},
		"a record without facts":            {record("", ""), uefi, nil, ipxe},
		"iPXE did not start":                {record("", ""), uefi, before(uefi, ipxe, hardware.PhaseProgram), grub},
		"iPXE did not start, now HTTP boot": {record("", ""), http, before(uefi, ipxe, hardware.PhaseProgram), grub},
		"shim did not start":                {record("", ""), uefi, before(uefi, grub, hardware.PhaseProgram), ipxe},
		"what started stays":                {record("", ""), uefi, before(uefi, grub, hardware.PhaseProgram+1), grub},
		"another firmware before":           {record("", ""), uefi, before(hardware.FirmwareBIOS, ipxe, hardware.PhaseProgram), ipxe},
		"the program was not fetched":       {record("", ""), uefi, before(uefi, ipxe, hardware.PhaseProgram-1), ipxe},
	} {
		if got, why := PickChain(tt.h, tt.fw, tt.before); got != tt.want || got == grub && why == "" {
			t.Errorf("%s: %s (%s), want %s", name, got, why, tt.want)
		}
	}
}
