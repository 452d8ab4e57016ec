package metadata

import (
	"net/netip"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func ptr[T any](v T) *T { return &v }

func mac(t testing.TB, s string) hardware.MAC {
	t.Helper()
	m, err := hardware.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func prefixes(s ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func addrs(s ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range s {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func subnets() []*hardware.Subnet {
	return []*hardware.Subnet{
		{Meta: hardware.Meta{Name: "storage"}, Spec: hardware.SubnetSpec{
			Prefix: netip.MustParsePrefix("10.9.0.0/16"), MTU: 9000, Gateway: netip.MustParseAddr("10.9.0.1"),
			Domain: "storage.example", DNS: addrs("10.9.0.2"),
		}},
		{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{
			Prefix: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"),
			DNS: addrs("10.0.0.1", "10.0.0.2"), Domain: "lab.example", Search: []string{"lab.example", "example"}, MTU: 1500,
			Routes: []hardware.Route{{To: netip.MustParsePrefix("172.16.0.0/12"), Via: netip.MustParseAddr("10.0.0.254")}},
		}},
	}
}

type seedCase struct {
	hardware *hardware.Hardware
	in       Input
}

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6Zl6VZbhl3pmZ1uhtCV0EyeLEOqGk4bv3WvQ0H5jQd ops: the \"team\" # <1>"

// cases are machines whose whole seed is a golden folder, and is fed to the real
// cloud-init.
func cases(t testing.TB) map[string]seedCase {
	in := Input{InstanceID: "01JD0000000000000000000000"}
	hw := func(name string, s hardware.Spec) *hardware.Hardware {
		return &hardware.Hardware{Meta: hardware.Meta{Name: name}, Spec: s}
	}
	return map[string]seedCase{
		"reservation": {hw("m1", hardware.Spec{
			SSHKeys:    []string{key},
			Interfaces: []hardware.NIC{{MAC: mac(t, "52:54:00:12:34:56"), Addresses: prefixes("10.0.0.5/24", "2001:db8::5/64")}},
		}), in},
		"dhcp": {hw("m2", hardware.Spec{
			Interfaces: []hardware.NIC{{MAC: mac(t, "52:54:00:12:34:57")}},
		}), in},
		"several-nics": {hw("m3", hardware.Spec{
			Hostname: "db.prod.example",
			Interfaces: []hardware.NIC{
				{MAC: mac(t, "52:54:00:12:34:01"), Name: "no", Addresses: prefixes("10.9.1.1/16")},
				{MAC: mac(t, "52:54:00:12:34:02"), Name: "1e3", Addresses: prefixes("10.0.0.6/24", "10.0.0.7/24")},
				{MAC: mac(t, "52:54:00:12:34:03")},
				{MAC: mac(t, "52:54:00:12:34:04"), DHCP: ptr(false)},
				{MAC: mac(t, "52:54:00:12:34:05"), DHCP: ptr(false), Name: "spare"},
				{MAC: mac(t, "52:54:00:12:34:06"), Addresses: prefixes("2001:db8::7/64"), DHCP: ptr(false)},
			},
		}), in},
		// Claimed, with everything that an installation adds.
		"claimed": {&hardware.Hardware{
			Meta: hardware.Meta{Name: "m6", UID: "01JH0000000000000000000006", Labels: map[string]string{"rack": "r1", "example.com/role": "no", "1e3": "on"}},
			Spec: hardware.Spec{
				Hostname: "m6.prod.example", Rack: "not this one",
				SSHKeys: []string{key}, Interfaces: []hardware.NIC{{MAC: mac(t, "52:54:00:12:34:66"), Addresses: prefixes("10.0.0.66/24")}},
			},
		}, Input{
			InstanceID: in.InstanceID, ProviderID: "rackstrap://01JC0000000000000000000000/01JH0000000000000000000006/capi-web-1",
			PhoneHome: "http://10.0.0.1:7080/seed/w.01JD.1795312800.c2VjcmV0/phone-home",
			Keys:      []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE everywhere", key + " again"},
		}},
		// The operator's user-data, and a phone call in the vendor-data.
		"own-user-phone": {hw("m7", hardware.Spec{
			Interfaces: []hardware.NIC{{MAC: mac(t, "52:54:00:12:34:67"), Addresses: prefixes("10.0.0.67/24")}},
		}), Input{
			InstanceID: "i-7", UserData: "## template: jinja\n#cloud-config\nfqdn: {{ ds.meta_data.local_hostname }}.x\n",
			PhoneHome: "http://10.0.0.1:7080/seed/w.01JD.1795312800.c2VjcmV0/phone-home",
		}},
		// Names and keys that YAML 1.1 reads as something else than text.
		"odd-names": {hw("on", hardware.Spec{
			Hostname: "0123", SSHKeys: []string{"ssh-rsa AAAA= : {} [] & * ! | > ' % @ ` \x7f\u0085\u2028\ufeff\uffff \U0001f511"},
			Interfaces: []hardware.NIC{{MAC: mac(t, "10:20:30:40:50:59"), Name: "null"}},
		}), Input{InstanceID: "0x10"}},
		"own-user-data": {hw("m5", hardware.Spec{
			SSHKeys: []string{key}, UserData: "not used",
			Interfaces: []hardware.NIC{{MAC: mac(t, "52:54:00:12:34:56"), Addresses: prefixes("192.168.7.7/24")}},
		}), Input{
			InstanceID: "i-5", UserData: "#cloud-config\r\n# tabs\tand trailing blanks  \nruncmd: [ 'true' ]", VendorData: "#cloud-config\n{}\n",
			MetaData: "# site\n---\nrole: db # keep\nmac: 52:54:00:12:34:56\n",
		}},
	}
}
