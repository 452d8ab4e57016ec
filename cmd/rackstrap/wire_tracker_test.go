package main

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// The token of a boot is not for whoever was lent its address later.
func TestHolds(t *testing.T) {
	t.Parallel()
	mine, sibling, other := hardware.MAC{2, 1}, hardware.MAC{2, 2}, hardware.MAC{2, 9}
	h := &hardware.Hardware{Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: mine}, {MAC: sibling}}}}
	at := netip.MustParseAddr("10.0.0.100")
	lease := func(m hardware.MAC, d time.Duration) hardware.Lease {
		return hardware.Lease{MAC: m, Addr: at, Expires: time.Now().Add(d)}
	}
	track := newTracker(nil, nil, slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		name  string
		after func()
		want  bool
	}{
		{"nobody has a lease", func() {}, true},
		{"its own", func() { track.leased(lease(mine, time.Hour)) }, true},
		{"its other NIC's", func() { track.leased(lease(sibling, time.Hour)) }, true},
		{"somebody else's", func() { track.leased(lease(other, time.Hour)) }, false},
		{"given back", func() { l := lease(other, time.Hour); l.Released = true; track.leased(l) }, true},
		{"expired", func() { track.leased(lease(other, -time.Second)) }, true},
		{"another server's address by now", func() { track.leased(lease(other, time.Hour)); track.unleased(at) }, true},
	} {
		tt.after()
		if got := track.holds(h, mine, at); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
