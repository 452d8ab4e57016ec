package action

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// v2 is the part of network-config version 2 that is rendered for
// systemd-networkd, all that the appliance itself makes. Anything else is
// refused: a bond that silently is none would cut the machine off.
type v2 struct {
	Version   int                   `yaml:"version"`
	Renderer  string                `yaml:"renderer"`
	Ethernets map[string]v2Ethernet `yaml:"ethernets"`
}

type v2Ethernet struct {
	Match struct {
		MAC  string `yaml:"macaddress"`
		Name string `yaml:"name"`
	} `yaml:"match"`
	SetName     string   `yaml:"set-name"`
	DHCP4       bool     `yaml:"dhcp4"`
	DHCP6       bool     `yaml:"dhcp6"`
	AcceptRA    *bool    `yaml:"accept-ra"`
	Optional    bool     `yaml:"optional"`
	MTU         int      `yaml:"mtu"`
	Addresses   []string `yaml:"addresses"`
	Gateway4    string   `yaml:"gateway4"`
	Gateway6    string   `yaml:"gateway6"`
	Nameservers struct {
		Addresses []string `yaml:"addresses"`
		Search    []string `yaml:"search"`
	} `yaml:"nameservers"`
	Routes []struct {
		To     string `yaml:"to"`
		Via    string `yaml:"via"`
		OnLink bool   `yaml:"on-link"`
		Metric int    `yaml:"metric"`
	} `yaml:"routes"`
}

// writeNetworkd renders the document to files of systemd-networkd.
func writeNetworkd(t *tree, doc *yaml.Node) error {
	doc, err := flat(doc)
	if err != nil {
		return permanent(fmt.Errorf("config: %w", err))
	}
	b, err := encodeYAML(doc)
	if err != nil {
		return err
	}
	files, err := renderNetworkd(b)
	if err != nil {
		return permanent(err)
	}
	for _, f := range files {
		if err := t.write(f); err != nil {
			return err
		}
	}
	for _, dir := range []string{"usr/lib/systemd/system", "lib/systemd/system"} {
		if t.exists(dir + "/systemd-networkd.service") {
			return t.symlink("/"+dir+"/systemd-networkd.service", "etc/systemd/system/multi-user.target.wants/systemd-networkd.service")
		}
	}
	return nil
}

// renderNetworkd returns the .network and .link files (systemd.network(5),
// systemd.link(5)) for a document.
func renderNetworkd(doc []byte) ([]file, error) {
	var cfg v2
	dec := yaml.NewDecoder(bytes.NewReader(doc))
	dec.KnownFields(true) // an unknown one is refused
	if err := dec.Decode(&cfg); err != nil {
		return nil, fmt.Errorf("config: has what the networkd renderer cannot write (use an image with cloud-init or netplan): %w", err)
	}
	var names []string
	for name := range cfg.Ethernets {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []file
	for n, name := range names {
		e := cfg.Ethernets[name]
		if e.Match.MAC == "" && e.Match.Name == "" {
			e.Match.Name = name
		}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("config: ethernets.%s: %w", name, err)
		}
		base := fmt.Sprintf("etc/systemd/network/10-rackstrap-%d", n)
		if e.SetName != "" {
			out = append(out, file{name: base + ".link", content: e.link(), mode: 0o644})
		}
		out = append(out, file{name: base + ".network", content: e.network(), mode: 0o644})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("config: has no ethernets")
	}
	return out, nil
}

// check refuses values that are none, since they become lines of a file.
func (e v2Ethernet) check() error {
	for _, s := range append([]string{e.Match.MAC, e.Match.Name, e.SetName}, e.Nameservers.Search...) {
		if strings.ContainsAny(s, "\n\r[]= ") {
			return fmt.Errorf("%q is no name", s)
		}
	}
	for _, a := range e.Addresses {
		if _, err := netip.ParsePrefix(a); err != nil {
			return fmt.Errorf("addresses: %q is no address with a prefix length", a)
		}
	}
	addresses := append([]string{}, e.Nameservers.Addresses...)
	for _, g := range []string{e.Gateway4, e.Gateway6} {
		if g != "" {
			addresses = append(addresses, g)
		}
	}
	for _, r := range e.Routes {
		if _, err := netip.ParsePrefix(r.To); err != nil && r.To != "default" {
			return fmt.Errorf("routes: to: %q is no prefix", r.To)
		}
		if r.Via != "" {
			addresses = append(addresses, r.Via)
		}
	}
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a); err != nil {
			return fmt.Errorf("%q is no address", a)
		}
	}
	return nil
}

const networkdHead = "# Written by Rackstrap.\n"

func (e v2Ethernet) match(key string) string {
	if e.Match.MAC != "" {
		return "[Match]\n" + key + "=" + e.Match.MAC + "\n"
	}
	return "[Match]\nName=" + e.Match.Name + "\n"
}

func (e v2Ethernet) link() []byte {
	match := strings.Replace(e.match("MACAddress"), "\nName=", "\nOriginalName=", 1)
	return []byte(networkdHead + match + "\n[Link]\nNamePolicy=\nName=" + e.SetName + "\n")
}

func (e v2Ethernet) network() []byte {
	var b bytes.Buffer
	b.WriteString(networkdHead + e.match("MACAddress"))
	if e.MTU > 0 || e.Optional {
		b.WriteString("\n[Link]\n")
		if e.MTU > 0 {
			fmt.Fprintf(&b, "MTUBytes=%d\n", e.MTU)
		}
		if e.Optional {
			b.WriteString("RequiredForOnline=no\n")
		}
	}
	b.WriteString("\n[Network]\n")
	fmt.Fprintf(&b, "DHCP=%s\n", map[[2]bool]string{
		{false, false}: "no", {true, false}: "ipv4", {false, true}: "ipv6", {true, true}: "yes",
	}[[2]bool{e.DHCP4, e.DHCP6}])
	if e.AcceptRA != nil {
		fmt.Fprintf(&b, "IPv6AcceptRA=%t\n", *e.AcceptRA)
	}
	lines := func(key string, values ...string) {
		for _, v := range values {
			if v != "" {
				fmt.Fprintf(&b, "%s=%s\n", key, v)
			}
		}
	}
	lines("Address", e.Addresses...)
	lines("Gateway", e.Gateway4, e.Gateway6)
	lines("DNS", e.Nameservers.Addresses...)
	lines("Domains", strings.Join(e.Nameservers.Search, " "))
	for _, r := range e.Routes {
		b.WriteString("\n[Route]\n")
		if r.To != "default" {
			lines("Destination", r.To)
		}
		lines("Gateway", r.Via)
		if r.OnLink {
			b.WriteString("GatewayOnLink=yes\n")
		}
		if r.Metric > 0 {
			fmt.Fprintf(&b, "Metric=%d\n", r.Metric)
		}
	}
	return b.Bytes()
}
