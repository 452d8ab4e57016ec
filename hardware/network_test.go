package hardware

import (
	"net/netip"
	"strings"
	"testing"
)

func TestStaticNetworkCheck(t *testing.T) {
	t.Parallel()
	h := &Hardware{Meta: Meta{Name: "m1"}, Spec: Spec{Interfaces: []NIC{{}, {}}}}
	address := func(nic int, p, via string) StaticAddress {
		a := StaticAddress{NIC: &nic, Address: netip.MustParsePrefix(p)}
		if via != "" {
			a.Gateway = netip.MustParseAddr(via)
		}
		return a
	}
	for want, n := range map[string]StaticNetwork{
		"": {Addresses: []StaticAddress{address(0, "10.0.0.5/24", "10.0.0.1"), address(0, "10.0.0.6/24", "10.0.0.1"), address(1, "fd00::5/64", "fe80::1")}},
		`addresses[0].nic: is 2, and hardware "m1" has the interfaces 0 to 1 (choose one of them, or add the NIC to its record)`: {Addresses: []StaticAddress{address(2, "10.0.0.5/24", "")}},
		"addresses[1].gateway: 10.1.0.1 is a second default route besides 10.0.0.1 (leave one of them out)":                      {Addresses: []StaticAddress{address(0, "10.0.0.5/24", "10.0.0.1"), address(1, "10.1.0.5/24", "10.1.0.1")}},
		"addresses[0].gateway: 10.0.1.1 is not in 10.0.0.0/24":                                                                   {Addresses: []StaticAddress{address(0, "10.0.0.5/24", "10.0.1.1")}},
		"addresses[0].gateway: fd00::1 is not of the family of 10.0.0.5/24":                                                      {Addresses: []StaticAddress{address(0, "10.0.0.5/24", "fd00::1")}},
		"addresses[0].gateway: 10.0.0.5 is the machine's own address":                                                            {Addresses: []StaticAddress{address(0, "10.0.0.5/24", "10.0.0.5")}},
		"addresses[0].address: 10.0.0.255 is the network or broadcast address of 10.0.0.0/24":                                    {Addresses: []StaticAddress{address(0, "10.0.0.255/24", "")}},
		"addresses[1]: 10.0.0.5 is also in addresses[0]":                                                                         {Addresses: []StaticAddress{address(0, "10.0.0.5/24", ""), address(1, "10.0.0.5/16", "")}},
		"addresses[0].address: is not an address with a prefix length":                                                           {Addresses: []StaticAddress{{}}},
		"nameservers[0]: 0.0.0.0 cannot be a nameserver":                                                                         {Nameservers: []netip.Addr{netip.IPv4Unspecified()}},
		"addresses[0].gateway: fe80::1 has a zone (leave out %eth0":                                                              {Addresses: []StaticAddress{address(0, "fd00::5/64", "fe80::1%eth0\n")}},
		"nameservers[0]: fe80::1%eth0 cannot be a nameserver":                                                                    {Nameservers: []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}},
		"search[0]: host name label":                                                                                             {Search: []string{"a_b"}},
		"static: has more than":                                                                                                  {Search: make([]string, 17)},
	} {
		c := NewChecker("request", "provision")
		n.CheckFor(c, "static", h)
		if err := c.Err(); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%v\nwant: %s", err, want)
		}
	}
}
