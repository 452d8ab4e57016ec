package hardware

import (
	"errors"
	"fmt"
	"net/netip"
)

// Hardware is a machine's record. Spec is written by operators only, Status by
// the engine only, Facts by the worker through the engine; the store keeps the
// three under keys of their own.
type Hardware struct {
	Meta   Meta   `json:"metadata"`
	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
	Facts  *Facts `json:"facts,omitempty"`
}

// Spec is what operators say of a machine.
type Spec struct {
	// Interfaces are the NICs we may hear from; at least one.
	Interfaces []NIC `json:"interfaces"`
	// Hostname of the installed system; the record's name where empty.
	Hostname string `json:"hostname,omitempty"`
	// Netboot says whether the machine may boot from us.
	Netboot Netboot `json:"netboot,omitzero"`
	// Arch is the CPU architecture as Debian names it: amd64 (default) or arm64.
	Arch string `json:"arch,omitempty"`
	// SSHKeys are authorised for the default user of the installed system.
	SSHKeys []string `json:"sshKeys,omitempty"`
	// UserData is cloud-init user-data used when a workflow names none.
	UserData string `json:"userData,omitempty" secret:"true"`
	// Protect forbids any write to the machine's disks.
	Protect bool `json:"protect,omitempty"`
	// KernelArgs are appended to the worker's kernel command line.
	KernelArgs []string `json:"kernelArgs,omitempty"`
	// Rack, Position (a unit or slot, as people call it) and AssetTag say where the
	// thing stands and what is glued on it.
	Rack     string `json:"rack,omitempty"`
	Position string `json:"position,omitempty"`
	AssetTag string `json:"assetTag,omitempty"`
	// Power says how the machine is switched; a person does it where nil.
	Power *PowerControl `json:"power,omitempty"`
	// Metadata says what the metadata services tell the installed system.
	Metadata Metadata `json:"metadata,omitzero"`
	// Notes are for people.
	Notes string `json:"notes,omitempty"`
}

// Metadata says what the metadata services tell the installed system.
type Metadata struct {
	// EC2UserData: the token-less EC2 paths serve user-data too. Everybody who can
	// take the machine's address on its network can then read it.
	EC2UserData bool `json:"ec2UserData,omitempty"`
	// EC2RequireToken: the EC2 paths answer with an IMDSv2 session token only.
	// cloud-init asks for one on Amazon's own machines only, and then finds nothing.
	EC2RequireToken bool `json:"ec2RequireToken,omitempty"`
}

// NIC is one network interface and the addresses reserved for it.
type NIC struct {
	// MAC is its Ethernet address, as 52:54:00:12:34:56; no other record has it.
	MAC MAC `json:"mac"`
	// Name is the interface name in the installed system, where one is wanted.
	Name string `json:"name,omitempty"`
	// Addresses are reservations with the prefix length of the Subnet they are in;
	// DHCPv4 hands out the first IPv4 address that is in the packet's Subnet.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// DHCP false: we never answer this NIC. Default true.
	DHCP *bool `json:"dhcp,omitempty"`
}

// Answered reports whether DHCP answers this NIC.
func (n NIC) Answered() bool { return n.DHCP == nil || *n.DHCP }

// Netboot holds the two switches of an operator; both default to true. The
// engine never writes them.
type Netboot struct {
	// AllowPXE false: the machine always boots its disk. Default true.
	AllowPXE *bool `json:"allowPXE,omitempty"`
	// AllowWorkflow false: no workflow is run on it. Default true.
	AllowWorkflow *bool `json:"allowWorkflow,omitempty"`
	// SecureBoot says whether the firmware checks signatures: on and off choose the boot
	// program, auto (the default) goes by the facts and by what earlier boots did.
	SecureBoot SecureBoot `json:"secureBoot,omitempty"`
	// Program replaces our boot program: a file of the drop-in folder, or one of ours.
	Program string `json:"program,omitempty"`
	// IPXE is booted instead of what we would choose; nil: nothing is.
	IPXE *OwnScript `json:"ipxe,omitempty"`
	// Consoles are the worker's kernel consoles, like ttyS1,115200; the last one is
	// /dev/console. Empty: those of the configuration, else the screen and the first
	// serial line.
	Consoles []string `json:"consoles,omitempty"`
}

// OwnScript is what the operator's machine boots; one of the two is set.
type OwnScript struct {
	// Script is an iPXE script; it begins with #!ipxe.
	Script string `json:"script,omitempty"`
	// URL is chained to: http, https or tftp.
	URL string `json:"url,omitempty"`
}

// SecureBoot says what an operator knows of the firmware's Secure Boot.
type SecureBoot string

// What an operator may say.
const (
	SecureBootAuto SecureBoot = "auto"
	SecureBootOn   SecureBoot = "on"
	SecureBootOff  SecureBoot = "off"
)

// PXE reports whether the machine may be given a boot program at all.
func (n Netboot) PXE() bool { return n.AllowPXE == nil || *n.AllowPXE }

// Workflow reports whether the machine may boot the worker for a workflow.
func (n Netboot) Workflow() bool { return n.AllowWorkflow == nil || *n.AllowWorkflow }

// HostName is the host name of the installed system.
func (h *Hardware) HostName() string {
	if h.Spec.Hostname != "" {
		return h.Spec.Hostname
	}
	return h.Meta.Name
}

// Arch is the CPU architecture, amd64 where the record names none.
func (h *Hardware) Arch() string {
	if h.Spec.Arch != "" {
		return h.Spec.Arch
	}
	return "amd64"
}

// NIC returns the interface with that MAC.
func (h *Hardware) NIC(m MAC) (NIC, bool) {
	for _, n := range h.Spec.Interfaces {
		if n.MAC == m {
			return n, true
		}
	}
	return NIC{}, false
}

// Reservation is the first IPv4 address of the NIC that lies in the subnet.
func (n NIC) Reservation(s *Subnet) (netip.Addr, bool) {
	for _, p := range n.Addresses {
		if p.Addr().Is4() && s.Spec.Prefix.Contains(p.Addr()) {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// Limits on one Hardware record, so that a record always fits the store's value
// limit of 1 MiB and a DHCP reply its packet.
const (
	MaxInterfaces = 32
	MaxAddresses  = 16
	MaxSSHKeys    = 64
	MaxKernelArgs = 64
	MaxUserData   = 256 << 10
	MaxNotes      = 16 << 10
	MaxPlace      = 128
)

// Validate says everything that is wrong with the record by itself, as an
// *Invalid; what is wrong between records (two machines with one MAC) the store
// says.
func (h *Hardware) Validate() error {
	c := NewChecker("hardware", h.Meta.Name)
	c.Meta(h.Meta)
	s := &h.Spec
	if len(s.Interfaces) == 0 {
		c.Addf("spec.interfaces", "is empty (list at least the NIC that netboots: `- mac: 52:54:00:12:34:56`)")
	}
	if len(s.Interfaces) > MaxInterfaces {
		c.Addf("spec.interfaces", "has %d entries, the limit is %d", len(s.Interfaces), MaxInterfaces)
	}
	if s.Hostname != "" {
		c.Add("spec.hostname", ValidHostname(s.Hostname))
	}
	if s.Arch != "" && s.Arch != "amd64" && s.Arch != "arm64" {
		c.Addf("spec.arch", "%q is not known (amd64 or arm64)", s.Arch)
	}
	seenMAC, seenAddr := map[MAC]int{}, map[netip.Addr]string{}
	for i, n := range s.Interfaces {
		n.check(c, fmt.Sprintf("spec.interfaces[%d]", i), i, seenMAC, seenAddr)
	}
	if len(s.KernelArgs) > MaxKernelArgs {
		c.Addf("spec.kernelArgs", "has %d entries, the limit is %d", len(s.KernelArgs), MaxKernelArgs)
	}
	for i, a := range s.KernelArgs {
		c.Add(fmt.Sprintf("spec.kernelArgs[%d]", i), ValidKernelArg(a))
	}
	if len(s.SSHKeys) > MaxSSHKeys {
		c.Addf("spec.sshKeys", "has %d entries, the limit is %d", len(s.SSHKeys), MaxSSHKeys)
	}
	for i, k := range s.SSHKeys {
		c.Add(fmt.Sprintf("spec.sshKeys[%d]", i), ValidSSHKey(k))
	}
	if len(s.UserData) > MaxUserData {
		c.Addf("spec.userData", "has %d bytes, the limit is %d", len(s.UserData), MaxUserData)
	}
	for field, v := range map[string]string{"spec.rack": s.Rack, "spec.position": s.Position, "spec.assetTag": s.AssetTag} {
		if len(v) > MaxPlace || PlainText(v, MaxPlace) != v {
			c.Addf(field, "%.80q must be plain text of at most %d bytes", v, MaxPlace)
		}
	}
	s.Netboot.check(c)
	s.Power.check(c)
	if len(s.Notes) > MaxNotes {
		c.Addf("spec.notes", "has %d bytes, the limit is %d", len(s.Notes), MaxNotes)
	}
	return c.Err()
}

func (n NIC) check(c *Checker, path string, i int, macs map[MAC]int, addrs map[netip.Addr]string) {
	switch {
	case n.MAC.IsZero():
		c.Addf(path+".mac", "is missing (write it as 52:54:00:12:34:56)")
	case n.MAC.IsMulticast():
		c.Addf(path+".mac", "%s is a group address, no NIC has it", n.MAC)
	default:
		if j, ok := macs[n.MAC]; ok {
			c.Addf(path+".mac", "%s is also in spec.interfaces[%d]", n.MAC, j)
		}
		macs[n.MAC] = i
	}
	if len(n.Name) > 15 {
		c.Addf(path+".name", "%.20q has %d bytes, Linux takes 15", n.Name, len(n.Name))
	} else if n.Name != "" {
		c.Add(path+".name", ValidName(n.Name))
	}
	if len(n.Addresses) > MaxAddresses {
		c.Addf(path+".addresses", "has %d entries, the limit is %d", len(n.Addresses), MaxAddresses)
	}
	for j, p := range n.Addresses {
		at := fmt.Sprintf("%s.addresses[%d]", path, j)
		a := p.Addr()
		if err := usableAddress(p); err != nil {
			c.Add(at, err)
		} else if addrs[a] != "" {
			c.Addf(at, "%s is also at %s", a, addrs[a])
		}
		addrs[a] = at
	}
}

// usableAddress says why no machine can have the address, or nil.
func usableAddress(p netip.Prefix) error {
	a := p.Addr()
	switch {
	case !p.IsValid():
		return errors.New("is not an address with a prefix length (write it as 10.0.0.5/24)")
	case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.Zone() != "":
		return fmt.Errorf("%s cannot be given to a machine", a)
	case a.Is4In6():
		return fmt.Errorf("%s is an IPv4 address written as IPv6 (write it as %s)", a, a.Unmap())
	case a.Is4() && p.Bits() < 31 && (a == p.Masked().Addr() || a == broadcast(p)):
		return fmt.Errorf("%s is the network or broadcast address of %s", a, p.Masked())
	}
	return nil
}
