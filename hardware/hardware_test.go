package hardware

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

// good is a record with everything in it, and nothing wrong.
func good() *Hardware {
	return &Hardware{
		Meta: Meta{Name: "m1", Labels: map[string]string{"rack": "7"}},
		Spec: Spec{
			Interfaces: []NIC{
				{MAC: MAC{0x52, 0x54, 0, 0, 0, 1}, Name: "lan0", Addresses: []netip.Prefix{
					netip.MustParsePrefix("10.0.0.5/24"), netip.MustParsePrefix("2001:db8::5/64"), netip.MustParsePrefix("10.1.0.5/32"),
				}},
				{MAC: MAC{0x52, 0x54, 0, 0, 0, 2}, DHCP: ptr(false), Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/31")}},
			},
			Hostname: "m1.example.org", Arch: "arm64",
			Netboot: Netboot{
				AllowPXE: ptr(true), AllowWorkflow: ptr(false), SecureBoot: SecureBootOn, Program: "vendor/ipxe-shimx64.efi",
				IPXE: &OwnScript{Script: "#!ipxe\r\n# für uns\n\tshell\n"}, Consoles: []string{"tty0", "uart8250,mmio32,0xfe010000,115200n8"},
			},
			SSHKeys: []string{"ssh-ed25519 AAAA ops", "sk-ssh-ed25519@openssh.com AAAA", "ecdsa-sha2-nistp256 AAAA"}, UserData: "#cloud-config\n",
			KernelArgs: []string{"console=ttyS1,115200n8", "quiet"}, Notes: "third from the top\n",
		},
	}
}

func TestGoodHardware(t *testing.T) {
	t.Parallel()
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
	least := &Hardware{Meta: Meta{Name: "m1"}, Spec: Spec{Interfaces: []NIC{{MAC: MAC{2}}}}}
	if err := least.Validate(); err != nil {
		t.Error(err)
	}
}

// TestWrongHardware: each wrong field is the one thing named, with what to write.
func TestWrongHardware(t *testing.T) {
	t.Parallel()
	prefix := netip.MustParsePrefix
	address := func(s string) func(*Hardware) {
		return func(h *Hardware) { h.Spec.Interfaces[1].Addresses = []netip.Prefix{prefix(s)} }
	}
	for name, tc := range map[string]struct {
		spoil       func(*Hardware)
		field, says string
	}{
		"name":             {func(h *Hardware) { h.Meta.Name = "M 1" }, "metadata.name", "use lower-case letters"},
		"label":            {func(h *Hardware) { h.Meta.Labels["a b"] = "" }, "metadata.labels", "use letters, digits"},
		"no interface":     {func(h *Hardware) { h.Spec.Interfaces = nil }, "spec.interfaces", "`- mac: 52:54:00:12:34:56`"},
		"many interfaces":  {manyNICs, "spec.interfaces", "has 33 entries, the limit is 32"},
		"no MAC":           {func(h *Hardware) { h.Spec.Interfaces[1].MAC = MAC{} }, "spec.interfaces[1].mac", "write it as 52:54:00:12:34:56"},
		"group MAC":        {func(h *Hardware) { h.Spec.Interfaces[1].MAC = MAC{0xff} }, "spec.interfaces[1].mac", "no NIC has it"},
		"a MAC twice":      {func(h *Hardware) { h.Spec.Interfaces[1].MAC = h.Spec.Interfaces[0].MAC }, "spec.interfaces[1].mac", "52:54:00:00:00:01 is also in spec.interfaces[0]"},
		"long NIC name":    {func(h *Hardware) { h.Spec.Interfaces[0].Name = strings.Repeat("e", 16) }, "spec.interfaces[0].name", "Linux takes 15"},
		"NIC name":         {func(h *Hardware) { h.Spec.Interfaces[0].Name = "../x" }, "spec.interfaces[0].name", "use lower-case letters"},
		"many addresses":   {manyAddresses, "spec.interfaces[0].addresses", "has 17 entries, the limit is 16"},
		"no prefix":        {func(h *Hardware) { h.Spec.Interfaces[1].Addresses = make([]netip.Prefix, 1) }, "spec.interfaces[1].addresses[0]", "write it as 10.0.0.5/24"},
		"unspecified":      {address("0.0.0.0/24"), "spec.interfaces[1].addresses[0]", "cannot be given to a machine"},
		"multicast":        {address("224.0.0.1/24"), "spec.interfaces[1].addresses[0]", "cannot be given to a machine"},
		"loopback":         {address("::1/128"), "spec.interfaces[1].addresses[0]", "cannot be given to a machine"},
		"network":          {address("10.9.0.0/24"), "spec.interfaces[1].addresses[0]", "network or broadcast address of 10.9.0.0/24"},
		"broadcast":        {address("10.9.255.255/16"), "spec.interfaces[1].addresses[0]", "network or broadcast address of 10.9.0.0/16"},
		"IPv4 as IPv6":     {address("::ffff:10.9.0.1/120"), "spec.interfaces[1].addresses[0]", "write it as 10.9.0.1"},
		"an address twice": {address("10.0.0.5/16"), "spec.interfaces[1].addresses[0]", "is also at spec.interfaces[0].addresses[0]"},
		"hostname":         {func(h *Hardware) { h.Spec.Hostname = "a_b" }, "spec.hostname", "use lower-case letters"},
		"arch":             {func(h *Hardware) { h.Spec.Arch = "x86_64" }, "spec.arch", "(amd64 or arm64)"},
		"kernel argument":  {func(h *Hardware) { h.Spec.KernelArgs[1] = "a b" }, "spec.kernelArgs[1]", "a boot script would read as its own"},
		"many arguments":   {func(h *Hardware) { h.Spec.KernelArgs = slices.Repeat([]string{"quiet"}, 65) }, "spec.kernelArgs", "has 65 entries, the limit is 64"},
		"Secure Boot":      {func(h *Hardware) { h.Spec.Netboot.SecureBoot = "yes" }, "spec.netboot.secureBoot", "(auto, on or off)"},
		"program outside":  {func(h *Hardware) { h.Spec.Netboot.Program = "../x.efi" }, "spec.netboot.program", "is not the name of a boot program"},
		"program URL":      {func(h *Hardware) { h.Spec.Netboot.Program = "http://x/x.efi" }, "spec.netboot.program", "is not the name of a boot program"},
		"hidden program":   {func(h *Hardware) { h.Spec.Netboot.Program = "a/.x.efi" }, "spec.netboot.program", "is not the name of a boot program"},
		"long program":     {func(h *Hardware) { h.Spec.Netboot.Program = strings.Repeat("x", 101) }, "spec.netboot.program", "at most 100"},
		"kernel program":   {func(h *Hardware) { h.Spec.Netboot.Program = "vmlinuz-amd64" }, "spec.netboot.program", "firmware cannot start it"},
		"own, empty":       {func(h *Hardware) { h.Spec.Netboot.IPXE = &OwnScript{} }, "spec.netboot.ipxe", "is empty"},
		"own, both":        {func(h *Hardware) { h.Spec.Netboot.IPXE.URL = "http://x/y" }, "spec.netboot.ipxe", "has both script and url"},
		"own, no magic":    {func(h *Hardware) { h.Spec.Netboot.IPXE.Script = "#!/bin/sh\n" }, "spec.netboot.ipxe.script", "is #!ipxe"},
		"own, other magic": {func(h *Hardware) { h.Spec.Netboot.IPXE.Script = "#!ipxe2\n" }, "spec.netboot.ipxe.script", "is #!ipxe"},
		"own, control":     {func(h *Hardware) { h.Spec.Netboot.IPXE.Script = "#!ipxe\n\necho \x1b[2J" }, "spec.netboot.ipxe.script", `'\x1b' in line 3`},
		"own, not UTF-8":   {func(h *Hardware) { h.Spec.Netboot.IPXE.Script = "#!ipxe\n\xff" }, "spec.netboot.ipxe.script", "is not UTF-8"},
		"own, long":        {func(h *Hardware) { h.Spec.Netboot.IPXE.Script = "#!ipxe\n" + strings.Repeat("x", 64<<10) }, "spec.netboot.ipxe.script", "the limit is 65536"},
		"URL of ftp":       {ownURL("ftp://x/y"), "spec.netboot.ipxe.url", "must begin with http://"},
		"URL of a command": {ownURL("http://x/y || shell"), "spec.netboot.ipxe.url", "has ' '"},
		"URL of a setting": {ownURL("http://x/${mac}"), "spec.netboot.ipxe.url", "write a script with chain"},
		"URL of a line":    {ownURL("http://x/\nshell"), "spec.netboot.ipxe.url", `has '\n'`},
		"URL of nobody":    {ownURL("http:///y"), "spec.netboot.ipxe.url", "names no server"},
		"URL of a secret":  {ownURL("http://u:geheim@x/y"), "spec.netboot.ipxe.url", "every viewer could read"},
		"URL of a file":    {ownURL("boot.ipxe"), "spec.netboot.ipxe.url", "must begin with http://"},
		"long URL":         {ownURL("http://x/" + strings.Repeat("y", 1000)), "spec.netboot.ipxe.url", "the limit is 1000"},
		"console":          {func(h *Hardware) { h.Spec.Netboot.Consoles[1] = "console=ttyS0" }, "spec.netboot.consoles[1]", "without console="},
		"console, more":    {func(h *Hardware) { h.Spec.Netboot.Consoles[0] = "tty0 init=/x" }, "spec.netboot.consoles[0]", "a boot script would read as its own"},
		"many consoles":    {func(h *Hardware) { h.Spec.Netboot.Consoles = slices.Repeat([]string{"tty0"}, 9) }, "spec.netboot.consoles", "has 9 entries, the limit is 8"},
		"SSH key":          {func(h *Hardware) { h.Spec.SSHKeys[1] = "ssh-ed25519" }, "spec.sshKeys[1]", "like `ssh-ed25519 AAAA… name`"},
		"two SSH keys":     {func(h *Hardware) { h.Spec.SSHKeys[0] = "ssh-rsa A\nssh-rsa B" }, "spec.sshKeys[0]", "is not a public key line"},
		"private key":      {func(h *Hardware) { h.Spec.SSHKeys[0] = "-----BEGIN OPENSSH PRIVATE KEY-----" }, "spec.sshKeys[0]", "is not a public key line"},
		"long SSH key":     {func(h *Hardware) { h.Spec.SSHKeys[0] = "ssh-rsa " + strings.Repeat("A", 9000) }, "spec.sshKeys[0]", "is not a public key line"},
		"many SSH keys":    {func(h *Hardware) { h.Spec.SSHKeys = slices.Repeat(h.Spec.SSHKeys[:1], 65) }, "spec.sshKeys", "has 65 entries, the limit is 64"},
		"user data":        {func(h *Hardware) { h.Spec.UserData = strings.Repeat("x", MaxUserData+1) }, "spec.userData", "the limit is 262144"},
		"notes":            {func(h *Hardware) { h.Spec.Notes = strings.Repeat("x", MaxNotes+1) }, "spec.notes", "the limit is 16384"},
	} {
		h := good()
		tc.spoil(h)
		var bad *Invalid
		if err := h.Validate(); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(bad.Errors) != 1 || bad.Errors[0].Field != tc.field || !strings.Contains(bad.Errors[0].Detail, tc.says) {
			t.Errorf("%s: %v, want %s: … %s", name, bad, tc.field, tc.says)
		}
		if bad.Kind != "hardware" || bad.Name != h.Meta.Name || len(bad.Error()) > 1000 {
			t.Errorf("%s: %s %q, %d bytes", name, bad.Kind, bad.Name, len(bad.Error()))
		}
	}
}

func ownURL(u string) func(*Hardware) {
	return func(h *Hardware) { h.Spec.Netboot.IPXE = &OwnScript{URL: u} }
}

func manyNICs(h *Hardware) {
	for i := range MaxInterfaces - 1 {
		h.Spec.Interfaces = append(h.Spec.Interfaces, NIC{MAC: MAC{2, 0, 0, 0, 1, byte(i)}})
	}
}

func manyAddresses(h *Hardware) {
	for i := range MaxAddresses - 2 {
		h.Spec.Interfaces[0].Addresses = append(h.Spec.Interfaces[0].Addresses, netip.MustParsePrefix(fmt.Sprintf("10.2.0.%d/24", i+1)))
	}
}

func TestHardwareDefaults(t *testing.T) {
	t.Parallel()
	h := &Hardware{Meta: Meta{Name: "m1"}}
	if h.HostName() != "m1" || h.Arch() != "amd64" || !h.Spec.Netboot.PXE() || !h.Spec.Netboot.Workflow() || !(NIC{}).Answered() {
		t.Errorf("defaults: %s %s %t %t", h.HostName(), h.Arch(), h.Spec.Netboot.PXE(), h.Spec.Netboot.Workflow())
	}
	h = good()
	if h.HostName() != "m1.example.org" || h.Arch() != "arm64" || !h.Spec.Netboot.PXE() || h.Spec.Netboot.Workflow() || h.Spec.Interfaces[1].Answered() {
		t.Errorf("given: %s %s %t %t", h.HostName(), h.Arch(), h.Spec.Netboot.PXE(), h.Spec.Netboot.Workflow())
	}
	if n, ok := h.NIC(MAC{0x52, 0x54, 0, 0, 0, 2}); !ok || n.Answered() {
		t.Errorf("second NIC: %+v, %t", n, ok)
	}
	if n, ok := h.NIC(MAC{1}); ok {
		t.Errorf("nobody's NIC: %+v", n)
	}
}

func TestReservation(t *testing.T) {
	t.Parallel()
	nic := NIC{Addresses: []netip.Prefix{
		netip.MustParsePrefix("2001:db8::5/64"), netip.MustParsePrefix("10.1.0.5/24"), netip.MustParsePrefix("10.0.0.5/24"), netip.MustParsePrefix("10.0.0.6/24"),
	}}
	for subnet, want := range map[string]string{"10.0.0.0/24": "10.0.0.5", "10.1.0.0/16": "10.1.0.5", "192.0.2.0/24": "", "0.0.0.0/0": "10.1.0.5"} {
		a, ok := nic.Reservation(&Subnet{Spec: SubnetSpec{Prefix: netip.MustParsePrefix(subnet)}})
		if ok != (want != "") || (ok && a.String() != want) {
			t.Errorf("%s: %v, %t, want %q", subnet, a, ok, want)
		}
	}
}
