package hardware

import (
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Limits on spec.netboot. MaxProgram leaves room in the 128 bytes that BOOTP has for
// the name of a file (RFC 951 section 3).
const (
	MaxProgram   = 100
	MaxOwnScript = 64 << 10
	MaxOwnURL    = 1000
	MaxConsoles  = 8
)

func (n *Netboot) check(c *Checker) {
	switch n.SecureBoot {
	case "", SecureBootAuto, SecureBootOn, SecureBootOff:
	default:
		c.Addf("spec.netboot.secureBoot", "%.20q is not known (auto, on or off)", n.SecureBoot)
	}
	if n.Program != "" {
		c.Add("spec.netboot.program", ValidProgram(n.Program))
	}
	if n.IPXE != nil {
		n.IPXE.check(c)
	}
	if len(n.Consoles) > MaxConsoles {
		c.Addf("spec.netboot.consoles", "has %d entries, the limit is %d", len(n.Consoles), MaxConsoles)
	}
	for i, t := range n.Consoles {
		c.Add(fmt.Sprintf("spec.netboot.consoles[%d]", i), ValidConsole(t))
	}
}

func (o *OwnScript) check(c *Checker) {
	switch {
	case o.Script != "" && o.URL != "":
		c.Addf("spec.netboot.ipxe", "has both script and url (leave one of them out)")
	case o.Script != "":
		c.Add("spec.netboot.ipxe.script", ValidOwnScript(o.Script))
	case o.URL != "":
		c.Add("spec.netboot.ipxe.url", ValidChainURL(o.URL))
	default:
		c.Addf("spec.netboot.ipxe", "is empty (give script, which begins with #!ipxe, or url; or leave ipxe out)")
	}
}

// ValidProgram says why name cannot be the name of a boot program: DHCP, TFTP and URLs
// carry it.
func ValidProgram(name string) error {
	bad := !fs.ValidPath(name) || name == "." || len(name) > MaxProgram
	for element := range strings.SplitSeq(name, "/") {
		bad = bad || strings.HasPrefix(element, ".")
	}
	bad = bad || strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/", r)
	})
	if bad {
		return fmt.Errorf("%.40q is not the name of a boot program (write it as snponly.efi or vendor/ipxe.efi, with at most %d letters, digits, . _ - + and /)", name, MaxProgram)
	}
	for _, other := range []string{"vmlinuz-", "initramfs-", "boot/", "grub/"} {
		if strings.HasPrefix(name, other) {
			return fmt.Errorf("%.40q is no boot program, firmware cannot start it (see: rackstrap boot-file list)", name)
		}
	}
	return nil
}

// ValidOwnScript says why s is not an iPXE script: iPXE knows one by its first bytes
// (image/script.c), and takes lines of text.
func ValidOwnScript(s string) error {
	first, _, _ := strings.Cut(s, "\n")
	switch {
	case len(s) > MaxOwnScript:
		return fmt.Errorf("has %d bytes, the limit is %d", len(s), MaxOwnScript)
	case strings.TrimRight(first, " \t\r") != "#!ipxe":
		return fmt.Errorf("begins with %.20q (the first line of an iPXE script is #!ipxe)", first)
	case !utf8.ValidString(s):
		return fmt.Errorf("is not UTF-8 text")
	}
	for i, r := range s {
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return fmt.Errorf("has the control character %q in line %d", r, 1+strings.Count(s[:i], "\n"))
		}
	}
	return nil
}

// ValidChainURL says why iPXE cannot be sent to u. What iPXE would read as more than a
// word is refused (core/exec.c of iPXE), and so are passwords: a record is shown to
// viewers, and a script to whoever asks for it.
func ValidChainURL(u string) error {
	if len(u) > MaxOwnURL {
		return fmt.Errorf("%.20q… has %d bytes, the limit is %d", u, len(u), MaxOwnURL)
	}
	for _, r := range u {
		if r <= ' ' || r > '~' || strings.ContainsRune("$`'\"\\|<>{}#", r) {
			return fmt.Errorf("%.80q has %q (escape it with %%; for ${…} of iPXE write a script with chain)", u, r)
		}
	}
	p, err := url.Parse(u)
	switch {
	case err != nil:
		return fmt.Errorf("%.80q is not a URL (write it as http://server.example.net/boot.ipxe)", u)
	case p.Scheme != "http" && p.Scheme != "https" && p.Scheme != "tftp":
		return fmt.Errorf("%.80q must begin with http://, https:// or tftp://", u)
	case p.Hostname() == "":
		return fmt.Errorf("%.80q names no server (write it as http://server.example.net/boot.ipxe)", u)
	case p.User != nil:
		return fmt.Errorf("holds a user name or password, which every viewer could read (let the server know the machine by its address)")
	}
	return nil
}

// ValidConsole says why t cannot follow console= on a kernel command line (Linux,
// Documentation/admin-guide/serial-console.rst).
func ValidConsole(t string) error {
	if err := ValidKernelArg(t); err != nil {
		return err
	}
	if strings.Contains(t, "=") || !(t[0] >= 'a' && t[0] <= 'z' || t[0] >= 'A' && t[0] <= 'Z') {
		return fmt.Errorf("%.40q is not a kernel console (write it as tty0 or ttyS0,115200, without console=)", t)
	}
	return nil
}
