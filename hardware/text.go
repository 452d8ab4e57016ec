package hardware

import (
	"fmt"
	"net/netip"
	"strings"
)

// ValidKernelArg says why a cannot be one word of a kernel command line in an
// iPXE or GRUB script: white space would start another argument, a line break
// another command, and ${, quotes, backslash, ;, |, & are read by the script
// languages themselves.
func ValidKernelArg(a string) error {
	if a == "" {
		return fmt.Errorf("is empty")
	}
	if len(a) > 512 {
		return fmt.Errorf("%.20q… has %d bytes, the limit is 512", a, len(a))
	}
	for _, r := range a {
		if r <= ' ' || r > '~' || strings.ContainsRune("$`'\"\\;|&<>{}#", r) {
			return fmt.Errorf("%q has %q, which a boot script would read as its own", a, r)
		}
	}
	if strings.HasPrefix(a, "rackstrap.") {
		return fmt.Errorf("%q is set by the appliance itself", a)
	}
	return nil
}

// ValidSSHKey says why k is not one line of authorized_keys without options, as
// sshd(8) describes it (type, base64 key, comment), or nil.
func ValidSSHKey(k string) error {
	f := strings.Fields(k)
	if strings.ContainsAny(k, "\r\n\x00") || len(f) < 2 || len(k) > 8<<10 ||
		(!strings.HasPrefix(f[0], "ssh-") && !strings.HasPrefix(f[0], "ecdsa-") && !strings.HasPrefix(f[0], "sk-")) {
		return fmt.Errorf("%.30q is not a public key line (like `ssh-ed25519 AAAA… name`)", k)
	}
	return nil
}

// broadcast is the last address of an IPv4 prefix.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	host := ^uint32(0) >> p.Bits()
	if p.Bits() == 0 {
		host = ^uint32(0)
	}
	for i := range b {
		b[i] |= byte(host >> (24 - 8*i))
	}
	return netip.AddrFrom4(b)
}
