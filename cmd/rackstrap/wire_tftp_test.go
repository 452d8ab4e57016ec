package main

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
)

// A forged request must not aim blocks at somebody who is not of our networks.
func TestTFTPReach(t *testing.T) {
	t.Parallel()
	a := openAppliance(t, t.TempDir())
	f := tftpFiles{ipxe.NewTFTPFiles(a.assets, nil, 7080, slog.New(slog.DiscardHandler)), a.inReach}
	inside, outside := netip.MustParseAddrPort("10.1.0.7:2000"), netip.MustParseAddrPort("192.0.2.7:2000")
	refused := func(from netip.AddrPort) bool {
		file, err := f.Open(t.Context(), from, "grub/grub.cfg")
		if err == nil {
			must(t, file.Close())
		}
		return errors.Is(err, errOutOfReach)
	}
	if refused(outside) {
		t.Error("without a Subnet nobody is out of reach")
	}
	must(t, a.db.CreateSubnet(t.Context(), &hardware.Subnet{Meta: hardware.Meta{Name: "far"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.1.0.0/24")}}))
	if refused(inside) {
		t.Errorf("%v is in a Subnet and was refused", inside)
	}
	if !refused(outside) {
		t.Errorf("%v is in no Subnet and was answered", outside)
	}
	a.c.DHCP.Enabled = false
	if refused(outside) {
		t.Error("another server does DHCP, and a machine was refused")
	}
}
