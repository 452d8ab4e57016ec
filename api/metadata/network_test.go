package metadata

import (
	"net/netip"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestStaticNetwork: what an install says of a NIC replaces what its record says of the
// same family, and nothing of the others.
func TestStaticNetwork(t *testing.T) {
	t.Parallel()
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{
		{MAC: mac(t, "52:54:00:00:00:01"), DHCP: ptr(false)},
		{MAC: mac(t, "52:54:00:00:00:02"), Addresses: prefixes("10.0.0.9/24", "fd00::9/64")},
		{MAC: mac(t, "52:54:00:00:00:03"), Addresses: prefixes("10.9.0.3/16")},
	}}}
	const rest = `  nic2:
    match:
      macaddress: "52:54:00:00:00:03"
    dhcp4: false
    accept-ra: false
    mtu: 9000
    addresses:
      - "10.9.0.3/16"
`
	for name, c := range map[string]struct {
		in   *hardware.StaticNetwork
		want string
	}{
		"both families, one gateway each": {&hardware.StaticNetwork{Addresses: []hardware.StaticAddress{
			{Address: netip.MustParsePrefix("10.0.0.70/24"), Gateway: netip.MustParseAddr("10.0.0.254")},
			{Address: netip.MustParsePrefix("fd00::70/64"), Gateway: netip.MustParseAddr("fe80::1")},
		}}, `version: 2
ethernets:
  nic1:
    match:
      macaddress: "52:54:00:00:00:02"
    dhcp4: false
    mtu: 1500
    addresses:
      - "10.0.0.70/24"
      - "fd00::70/64"
    routes:
      - to: "172.16.0.0/12"
        via: "10.0.0.254"
      - to: "0.0.0.0/0"
        via: "10.0.0.254"
      - to: "::/0"
        via: "fe80::1"
    nameservers:
      addresses:
        - "10.0.0.1"
        - "10.0.0.2"
      search:
        - "lab.example"
        - "example"
` + rest + `    nameservers:
      addresses:
        - "10.9.0.2"
      search:
        - "storage.example"
`},
		"one without a gateway, and nameservers": {&hardware.StaticNetwork{
			Addresses:   []hardware.StaticAddress{{NIC: ptr(1), Address: netip.MustParsePrefix("10.0.0.70/24")}},
			Nameservers: addrs("10.0.0.53"), Search: []string{"k8s.example"},
		}, `version: 2
ethernets:
  nic1:
    match:
      macaddress: "52:54:00:00:00:02"
    dhcp4: false
    mtu: 1500
    addresses:
      - "10.0.0.70/24"
      - "fd00::9/64"
    routes:
      - to: "172.16.0.0/12"
        via: "10.0.0.254"
    nameservers:
      addresses:
        - "10.0.0.53"
      search:
        - "k8s.example"
` + rest + `    routes:
      - to: "0.0.0.0/0"
        via: "10.9.0.1"
    nameservers:
      addresses:
        - "10.0.0.53"
      search:
        - "k8s.example"
`},
	} {
		k := hardware.NewChecker("request", "provision")
		c.in.CheckFor(k, "static", h)
		if err := k.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := NetworkConfig(h, subnets(), c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant:\n%s", name, err, got, c.want)
		}
	}
}
