package metadata

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// tree is what is below meta-data/, by path without slashes at its ends. The
// folders follow from the paths. As on EC2, a value has no line break at its end
// and a list has one value a line.
type tree map[string]string

// ec2Tree is what a machine with an installed system is told without a token:
// nothing in it is a secret. The paths are those of version 2009-04-04, what
// cloud-init reads of later ones, and a few of ours for ds.meta_data:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html
func ec2Tree(h *hardware.Hardware, subnets []*hardware.Subnet, c *Config) tree {
	t := tree{"instance-id": instanceID(h), "name": h.Meta.Name, "uuid": h.Meta.UID, "hardware-uid": h.Meta.UID}
	if claim := h.Status.Claim; claim != nil {
		t["provider-id"] = hardware.ProviderID(c.Installation, h.Meta.UID, claim.ID)
	}
	host, domain := names(h, subnets)
	if domain != "" {
		host += "." + domain
	}
	t["hostname"], t["local-hostname"] = host, host
	if rack := failureDomain(h); rack != "" {
		t["placement/availability-zone"] = rack
	}
	for i, k := range keys(h, c.Keys) {
		t["public-keys/"+strconv.Itoa(i)+"/openssh-key"] = string(k)
	}
	t.addNetwork(h, host)
	return t
}

// instanceID is the install's, as the seed on a disk has it; the machine's own
// where we did not install it.
func instanceID(h *hardware.Hardware) string {
	if i := h.Status.Install; i != nil {
		return i.UID
	}
	return h.Meta.UID
}

// addNetwork names the NICs that have an IPv4 address and ask for it by DHCP.
// cloud-init makes each NIC it finds here ask by DHCP, so one that nobody answers,
// or that may have no cable, would hold up the start of the system; and it makes
// one with ipv6s ask by DHCPv6, which we do not answer.
func (t tree) addNetwork(h *hardware.Hardware, host string) {
	for i, n := range h.Spec.Interfaces {
		var four []string
		cidr := ""
		for _, p := range n.Addresses {
			a := p.Addr()
			if !a.Is4() {
				continue
			}
			four = append(four, a.String())
			if cidr == "" {
				cidr = p.Masked().String()
			}
			if t["public-ipv4"] == "" && public(a) {
				t["public-ipv4"] = a.String()
			}
		}
		if len(four) == 0 {
			continue
		}
		if t["local-ipv4"] == "" {
			t["local-ipv4"], t["mac"] = four[0], n.MAC.String()
		}
		if !n.Answered() {
			continue
		}
		at := "network/interfaces/macs/" + n.MAC.String() + "/"
		t[at+"device-number"] = strconv.Itoa(i)
		t[at+"mac"] = n.MAC.String()
		t[at+"local-hostname"] = host
		t[at+"local-ipv4s"] = strings.Join(four, "\n")
		t[at+"subnet-ipv4-cidr-block"] = cidr
	}
	if t["mac"] == "" && len(h.Spec.Interfaces) > 0 {
		t["mac"] = h.Spec.Interfaces[0].MAC.String()
	}
}

// public reports whether an address is one of the Internet's.
func public(a netip.Addr) bool {
	shared := netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
	return a.IsGlobalUnicast() && !a.IsPrivate() && !shared.Contains(a)
}

// get answers for a path, given as its parts: a value, or a listing.
func (t tree) get(parts []string) (string, bool) {
	path := strings.Join(parts, "/")
	if v, ok := t[path]; ok {
		return v, true
	}
	if path != "" {
		path += "/"
	}
	list := t.list(path)
	if path == "public-keys/" {
		// as the only folder, it lists its own as INDEX=NAME
		for i, f := range list {
			n := strings.TrimSuffix(f, "/")
			list[i] = n + "=key-" + n
		}
	}
	return strings.Join(list, "\n"), len(list) > 0
}

// list has what is in a folder, folders with a slash behind them.
func (t tree) list(folder string) []string {
	var out []string
	for p := range t {
		rest, ok := strings.CutPrefix(p, folder)
		if !ok {
			continue
		}
		if name, _, deeper := strings.Cut(rest, "/"); deeper {
			rest = name + "/"
		}
		out = append(out, rest)
	}
	slices.SortFunc(out, byNumber)
	return slices.Compact(out)
}

// byNumber sorts 10 after 9.
func byNumber(a, b string) int {
	m, merr := strconv.Atoi(strings.TrimSuffix(a, "/"))
	n, nerr := strconv.Atoi(strings.TrimSuffix(b, "/"))
	if merr == nil && nerr == nil {
		return m - n
	}
	return strings.Compare(a, b)
}
