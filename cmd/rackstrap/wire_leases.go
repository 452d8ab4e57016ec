package main

import (
	"context"

	"github.com/rackstrap/rackstrap/hardware"
)

// revokeLease takes a DHCP lease back. Where DHCP is off nobody else has it in memory.
func (a *appliance) revokeLease(ctx context.Context, subnet string, mac hardware.MAC) (hardware.Lease, bool, error) {
	if a.dhcp != nil {
		return a.dhcp.Revoke(ctx, subnet, mac)
	}
	l, ok := a.kv.Leases().Get(subnet, mac)
	if !ok {
		return l, false, nil
	}
	err := a.kv.Leases().Delete(ctx, subnet, mac)
	if h, known := a.db.View().HardwareByMAC(mac); err == nil && known {
		a.engine.Observe(h, "", hardware.ReasonLeaseRevoked, l.Addr.String()+" in subnet "+subnet, 0, 0)
	}
	return l, true, err
}
