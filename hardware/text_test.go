package hardware

import (
	"net/netip"
	"strings"
	"testing"
)

func TestValidKernelArg(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"quiet": "", "console=ttyS1,115200n8": "", "a.b-c_d=[x]:/~@%!*?()^+": "", strings.Repeat("a", 512): "",
		"":                       "is empty",
		strings.Repeat("a", 513): "has 513 bytes, the limit is 512",
		"rackstrap.token=x":      "is set by the appliance itself",
		"ä":                      "has 'ä'",
		"\xff":                   "has '\ufffd'",
	} {
		says(t, arg, ValidKernelArg(arg), want)
	}
	// What would begin another argument, another command, or be replaced by the
	// script language of iPXE or GRUB.
	for _, c := range " \t\n\r\x00\x7f\u00a0\u2028$`'\"\\;|&<>{}#" {
		says(t, "a"+string(c)+"b", ValidKernelArg("a"+string(c)+"b"), "a boot script would read as its own")
	}
	for _, arg := range []string{"x ${net0/mac}", "quiet\nchain http://192.0.2.1/", "$(reboot)", "a || shell"} {
		says(t, arg, ValidKernelArg(arg), "a boot script would read as its own")
	}
}

func TestBroadcast(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"10.0.0.0/24": "10.0.0.255", "10.0.0.7/24": "10.0.0.255", "10.0.0.0/8": "10.255.255.255", "10.0.0.4/30": "10.0.0.7",
		"0.0.0.0/0": "255.255.255.255", "10.0.0.1/32": "10.0.0.1", "128.0.0.0/1": "255.255.255.255", "10.0.128.0/17": "10.0.255.255",
	} {
		if got := broadcast(netip.MustParsePrefix(in)); got.String() != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
