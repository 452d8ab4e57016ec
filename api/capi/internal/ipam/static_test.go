package ipam

import (
	"encoding/json"
	"net/netip"
	"testing"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

func ptr[T any](v T) *T { return &v }

func TestStatic(t *testing.T) {
	t.Parallel()
	addr := func(p, via string) Address {
		a := Address{Prefix: netip.MustParsePrefix(p)}
		if via != "" {
			a.Gateway = netip.MustParseAddr(via)
		}
		return a
	}
	a, b, six := addr("10.0.0.5/24", "10.0.0.1"), addr("10.1.0.5/24", "10.1.0.1"), addr("fd00::5/64", "fd00::1")
	asked := func(gateways ...*bool) infrav1.Network {
		var n infrav1.Network
		for _, g := range gateways {
			n.Addresses = append(n.Addresses, infrav1.PoolAddress{Gateway: g, PoolRef: infrav1.PoolReference{Kind: "Pool", Name: "p"}})
		}
		return n
	}
	with := asked(nil)
	with.Addresses[0].Interface = ptr(int32(1))
	with.Nameservers, with.SearchDomains = []string{"10.0.0.2"}, []string{"example"}
	for name, c := range map[string]struct {
		in   infrav1.Network
		got  []Address
		want string
	}{
		"nothing":                  {infrav1.Network{}, nil, `null`},
		"one of each family":       {asked(nil, nil), []Address{a, six}, `{"addresses":[{"address":"10.0.0.5/24","gateway":"10.0.0.1"},{"address":"fd00::5/64","gateway":"fd00::1"}]}`},
		"the first is the route":   {asked(nil, nil), []Address{a, b}, `{"addresses":[{"address":"10.0.0.5/24","gateway":"10.0.0.1"},{"address":"10.1.0.5/24"}]}`},
		"unless it refuses":        {asked(ptr(false), nil), []Address{a, b}, `{"addresses":[{"address":"10.0.0.5/24"},{"address":"10.1.0.5/24","gateway":"10.1.0.1"}]}`},
		"or another asks":          {asked(nil, ptr(true)), []Address{a, b}, `{"addresses":[{"address":"10.0.0.5/24"},{"address":"10.1.0.5/24","gateway":"10.1.0.1"}]}`},
		"two ask":                  {asked(ptr(true), ptr(true)), []Address{a, b}, "spec.network.addresses[0] and [1] both want to be the default route (write `gateway: false` in one of them)"},
		"a pool without gateway":   {asked(ptr(true)), []Address{addr("10.0.0.5/24", "")}, "spec.network.addresses[0] wants a gateway, and the pool Pool/p has none (add it to the pool, or leave gateway out)"},
		"an interface and servers": {with, []Address{a}, `{"addresses":[{"nic":1,"address":"10.0.0.5/24","gateway":"10.0.0.1"}],"nameservers":["10.0.0.2"],"search":["example"]}`},
		"no address":               {infrav1.Network{Nameservers: []string{"x"}}, nil, `spec.network.nameservers[0] "x" is not an address`},
	} {
		out, err := Static(c.in, c.got)
		text, _ := json.Marshal(out)
		if err != nil {
			text = []byte(err.Error())
		}
		if string(text) != c.want {
			t.Errorf("%s: %s\nwant: %s", name, text, c.want)
		}
	}
}
