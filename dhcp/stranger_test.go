package dhcp

import (
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestStrangerRing(t *testing.T) {
	t.Parallel()
	r := NewStrangerRing()
	now := goldenTime
	mac := func(i int) hardware.MAC { return hardware.MAC{0x52, 0x54, 0, byte(i >> 16), byte(i >> 8), byte(i)} }
	// A second between packets: the rate is not what bounds here.
	for i := range maxStrangers + 10 {
		now = now.Add(time.Second)
		if !r.seen(&Class{MAC: mac(i), Vendor: "x"}, "eth0", now) {
			t.Fatalf("packet %d was over the rate", i)
		}
	}
	got := r.List()
	if len(got) != maxStrangers || len(r.byMAC) != maxStrangers {
		t.Fatalf("%d remembered, want %d", len(got), maxStrangers)
	}
	if got[0].MAC != mac(maxStrangers+9) || got[len(got)-1].MAC != mac(10) {
		t.Errorf("the ring goes from %s to %s", got[0].MAC, got[len(got)-1].MAC)
	}
	now = now.Add(time.Second)
	r.seen(&Class{MAC: mac(10), Vendor: "PXEClient", Firmware: hardware.FirmwareUEFI}, "eth1", now)
	r.seen(&Class{MAC: mac(10), Vendor: "udhcp"}, "eth1", now)
	s := r.List()[0]
	if s.MAC != mac(10) || s.Count != 3 || s.Firmware != hardware.FirmwareUEFI || s.Vendor != "PXEClient" || s.Interface != "eth1" || s.Reason != hardware.ReasonUnknownMachine || !s.First.Before(s.Last) {
		t.Errorf("%+v", s)
	}
	r.Forget(mac(10))
	if r.len() != maxStrangers-1 {
		t.Error("not forgotten")
	}
}

func TestStrangerRate(t *testing.T) {
	t.Parallel()
	r := NewStrangerRing()
	passed := 0
	for range 10 * strangerBurst {
		if r.seen(&Class{MAC: hardware.MAC{2}}, "eth0", goldenTime) {
			passed++
		}
	}
	if passed != strangerBurst {
		t.Errorf("%d packets at once passed, want %d", passed, strangerBurst)
	}
	if !r.seen(&Class{MAC: hardware.MAC{2}}, "eth0", goldenTime.Add(time.Second)) {
		t.Error("nothing passes a second later")
	}
}
