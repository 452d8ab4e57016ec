package netup

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// pick chooses the cards to use: the one with the wanted MAC, or all when none is
// wanted. physical says whether a card is hardware: bridges and bonds may carry the
// MAC of a card.
func pick(all []net.Interface, want hardware.MAC, physical func(name string) bool) []net.Interface {
	var out []net.Interface
	for _, n := range all {
		if len(n.HardwareAddr) != 6 || n.Flags&net.FlagLoopback != 0 || !physical(n.Name) {
			continue
		}
		if want.IsZero() || hardware.MAC(n.HardwareAddr) == want {
			out = append(out, n)
			if !want.IsZero() {
				break
			}
		}
	}
	return out
}

// physical reports whether a card is a device of the machine and not wireless.
func physical(name string) bool {
	dir := filepath.Join("/sys/class/net", filepath.Base(name))
	if _, err := os.Stat(filepath.Join(dir, "device")); err != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "phy80211"))
	return err != nil
}

// describe lists cards for the console.
func describe(all []net.Interface) string {
	var s []string
	for _, n := range all {
		if n.Flags&net.FlagLoopback == 0 && len(n.HardwareAddr) > 0 {
			s = append(s, n.Name+" "+n.HardwareAddr.String())
		}
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
