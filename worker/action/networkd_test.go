package action

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/worker/netconfig"
)

const networkdWant = `== etc/systemd/network/10-rackstrap-0.link 0644
# Written by Rackstrap.
[Match]
MACAddress=52:54:00:12:34:56

[Link]
NamePolicy=
Name=lan0
== etc/systemd/network/10-rackstrap-0.network 0644
# Written by Rackstrap.
[Match]
MACAddress=52:54:00:12:34:56

[Link]
MTUBytes=9000

[Network]
DHCP=no
Address=192.0.2.5/24
Address=2001:db8::5/64
DNS=192.0.2.1
Domains=example.net example.org

[Route]
Destination=0.0.0.0/0
Gateway=192.0.2.1

[Route]
Destination=198.51.100.0/24
Gateway=192.0.2.2
Metric=10
== etc/systemd/network/10-rackstrap-1.network 0644
# Written by Rackstrap.
[Match]
MACAddress=52:54:00:12:34:57

[Link]
RequiredForOnline=no

[Network]
DHCP=ipv4
`

func TestRenderNetworkd(t *testing.T) {
	t.Parallel()
	files, err := renderNetworkd([]byte(`version: 2
ethernets:
  nic1: {match: {macaddress: "52:54:00:12:34:57"}, dhcp4: true, optional: true}
  nic0:
    match: {macaddress: "52:54:00:12:34:56"}
    set-name: lan0
    dhcp4: false
    mtu: 9000
    addresses: [192.0.2.5/24, "2001:db8::5/64"]
    routes:
      - {to: 0.0.0.0/0, via: 192.0.2.1}
      - {to: 198.51.100.0/24, via: 192.0.2.2, metric: 10}
    nameservers: {addresses: [192.0.2.1], search: [example.net, example.org]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range files {
		fmt.Fprintf(&got, "== %s %04o\n%s", f.name, f.mode, f.content)
	}
	if got.String() != networkdWant {
		t.Errorf("got:\n%s", got.String())
	}
}

// What cannot be written in full is refused; no value becomes a line of its own.
func TestRenderNetworkdRefuses(t *testing.T) {
	t.Parallel()
	for doc, says := range map[string]string{
		"version: 2\nbonds: {b0: {}}":                                              "bonds",
		"version: 2\nethernets: {n: {wakeonlan: true}}":                            "wakeonlan",
		"version: 2\nethernets: {n: {set-name: \"a\\nExec=x\"}}":                   "no name",
		"version: 2\nethernets: {n: {match: {macaddress: \"x\\n[Service]\"}}}":     "no name",
		"version: 2\nethernets: {n: {addresses: [\"192.0.2.5\"]}}":                 "no address",
		"version: 2\nethernets: {n: {gateway4: \"a\\nb\"}}":                        "no address",
		"version: 2\nethernets: {n: {routes: [{to: everywhere, via: 192.0.2.1}]}}": "no prefix",
		"version: 2\nethernets: {n: {nameservers: {search: [\"a b\"]}}}":           "no name",
		"version: 2\n": "no ethernets",
	} {
		if _, err := renderNetworkd([]byte(doc)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", doc, err, says)
		}
	}
	for _, doc := range []string{"", "version: 1", "network: 3", "a: [", "- x"} {
		if _, err := netconfig.Parse(doc); err == nil {
			t.Errorf("%q was accepted", doc)
		}
	}
}
