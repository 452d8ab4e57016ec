package hardware

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func goodSubnet() *Subnet {
	addr := netip.MustParseAddr
	return &Subnet{Meta: Meta{Name: "lan"}, Spec: SubnetSpec{
		Prefix: netip.MustParsePrefix("10.0.0.0/24"), Mode: ModeReservation, Gateway: addr("10.0.0.1"),
		DNS: []netip.Addr{addr("10.0.0.1"), addr("9.9.9.9")}, NTP: []netip.Addr{addr("10.0.0.1")},
		Domain: "example.org", Search: []string{"example.org", "lab.example.org"}, MTU: 9000,
		Routes:    []Route{{To: netip.MustParsePrefix("10.9.0.0/16"), Via: addr("10.0.0.254")}, {To: netip.MustParsePrefix("0.0.0.0/0"), Via: addr("10.0.0.1")}},
		LeaseTime: Duration(10 * time.Minute), Advertise: addr("10.0.0.2"),
	}}
}

// pool makes a Pool of ranges as they are written.
func pool(ranges ...string) *Pool {
	p := new(Pool)
	for _, s := range ranges {
		r, err := ParseAddrRange(s)
		if err != nil {
			panic(err)
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p
}

func TestPoolSize(t *testing.T) {
	t.Parallel()
	p := pool("10.0.0.100-10.0.0.199", "10.0.1.1", "10.0.255.255-10.1.0.0")
	p.Exclude = pool("10.0.0.150-10.0.0.159").Ranges
	if p.Size() != 93 {
		t.Errorf("size %d", p.Size())
	}
}

func TestSubnet(t *testing.T) {
	t.Parallel()
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	for name, tc := range map[string]struct {
		spoil       func(*SubnetSpec)
		field, says string
	}{
		"good":            {func(*SubnetSpec) {}, "", ""},
		"least":           {func(s *SubnetSpec) { *s = SubnetSpec{Prefix: s.Prefix} }, "", ""},
		"off":             {func(s *SubnetSpec) { s.Mode = ModeOff }, "", ""},
		"widest":          {func(s *SubnetSpec) { *s = SubnetSpec{Prefix: prefix("10.0.0.0/8")} }, "", ""},
		"narrowest":       {func(s *SubnetSpec) { *s = SubnetSpec{Prefix: prefix("10.0.0.0/30")} }, "", ""},
		"no prefix":       {func(s *SubnetSpec) { s.Prefix = netip.Prefix{} }, "spec.prefix", "write it as 10.0.0.0/24"},
		"IPv6":            {func(s *SubnetSpec) { s.Prefix = prefix("2001:db8::/64") }, "spec.prefix", "is not an IPv4 network"},
		"host bits":       {func(s *SubnetSpec) { s.Prefix = prefix("10.0.0.7/24") }, "spec.prefix", "did you mean 10.0.0.0/24?"},
		"too wide":        {func(s *SubnetSpec) { *s = SubnetSpec{Prefix: prefix("0.0.0.0/7")} }, "spec.prefix", "must be 8 to 30"},
		"too narrow":      {func(s *SubnetSpec) { *s = SubnetSpec{Prefix: prefix("10.0.0.0/31")} }, "spec.prefix", "must be 8 to 30"},
		"mode":            {func(s *SubnetSpec) { s.Mode = "dhcp" }, "spec.mode", "(reservation, pool, proxy or off)"},
		"gateway outside": {func(s *SubnetSpec) { s.Gateway = addr("10.0.1.1") }, "spec.gateway", "is not in 10.0.0.0/24"},
		"gateway of IPv6": {func(s *SubnetSpec) { s.Gateway = addr("2001:db8::1") }, "spec.gateway", "is not in 10.0.0.0/24"},
		"gateway network": {func(s *SubnetSpec) { s.Gateway = addr("10.0.0.0") }, "spec.gateway", "network or broadcast address"},
		"gateway all":     {func(s *SubnetSpec) { s.Gateway = addr("10.0.0.255") }, "spec.gateway", "network or broadcast address"},
		"DNS of IPv6":     {func(s *SubnetSpec) { s.DNS[1] = addr("2001:db8::1") }, "spec.dns[1]", "is not an IPv4 address"},
		"many DNS":        {func(s *SubnetSpec) { s.DNS = slices.Repeat(s.DNS[:1], 9) }, "spec.dns", "has 9 entries, the limit is 8"},
		"NTP without":     {func(s *SubnetSpec) { s.NTP[0] = netip.Addr{} }, "spec.ntp[0]", "is not an IPv4 address"},
		"domain":          {func(s *SubnetSpec) { s.Domain = "a b" }, "spec.domain", "has ' '"},
		"search":          {func(s *SubnetSpec) { s.Search[1] = "" }, "spec.search[1]", "is empty"},
		"many searched":   {func(s *SubnetSpec) { s.Search = slices.Repeat(s.Search[:1], 9) }, "spec.search", "has 9 entries, the limit is 8"},
		"small MTU":       {func(s *SubnetSpec) { s.MTU = 575 }, "spec.mtu", "must be 576 to 9216"},
		"large MTU":       {func(s *SubnetSpec) { s.MTU = 9217 }, "spec.mtu", "must be 576 to 9216"},
		"route's bits":    {func(s *SubnetSpec) { s.Routes[0].To = prefix("10.9.0.1/16") }, "spec.routes[0]", "needs `to: 10.1.0.0/16`"},
		"route of IPv6":   {func(s *SubnetSpec) { s.Routes[1].To = prefix("::/0") }, "spec.routes[1]", "needs `to: 10.1.0.0/16`"},
		"route's via":     {func(s *SubnetSpec) { s.Routes[1].Via = netip.Addr{} }, "spec.routes[1]", "`via: 10.0.0.1`"},
		"many routes":     {func(s *SubnetSpec) { s.Routes = slices.Repeat(s.Routes[:1], 17) }, "spec.routes", "has 17 entries, the limit is 16"},
		"short lease":     {func(s *SubnetSpec) { s.LeaseTime = Duration(59 * time.Second) }, "spec.leaseTime", "must be 1m to 8760h"},
		"long lease":      {func(s *SubnetSpec) { s.LeaseTime = Duration(8761 * time.Hour) }, "spec.leaseTime", "must be 1m to 8760h"},
		"pool":            {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.100-10.0.0.199", "10.0.0.210") }, "", ""},
		"whole network":   {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.1-10.0.0.254") }, "", ""},
		"pool excludes": {func(s *SubnetSpec) {
			s.Mode, s.Pool = ModePool, pool("10.0.0.100-10.0.0.199")
			s.Pool.Exclude = pool("10.0.0.110-10.0.0.119", "10.0.0.199").Ranges
		}, "", ""},
		"discovery":           {func(s *SubnetSpec) { s.Mode, s.Pool, s.Discovery = ModePool, pool("10.0.0.9"), true }, "", ""},
		"proxy and discovery": {func(s *SubnetSpec) { s.Mode, s.Discovery, s.LeaseTime = ModeProxy, true, 0 }, "", ""},
		"pool missing":        {func(s *SubnetSpec) { s.Mode = ModePool }, "spec.pool.ranges", "{ranges: [10.0.0.128-10.0.0.254]}"},
		"pool empty":          {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool() }, "spec.pool.ranges", "`ranges: [10.0.0.128-10.0.0.254]`"},
		"pool without mode":   {func(s *SubnetSpec) { s.Mode, s.Pool = "", pool("10.0.0.9") }, "spec.pool", "lends nothing in mode reservation"},
		"pool in proxy":       {func(s *SubnetSpec) { s.Mode, s.LeaseTime, s.Pool = ModeProxy, 0, pool("10.0.0.9") }, "spec.pool", "lends nothing in mode proxy"},
		"proxy's leases":      {func(s *SubnetSpec) { s.Mode = ModeProxy }, "spec.leaseTime", "the other DHCP server gives the addresses"},
		"discovery alone":     {func(s *SubnetSpec) { s.Discovery = true }, "spec.discovery", "needs spec.mode pool or proxy"},
		"range outside":       {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.200-10.0.1.20") }, "spec.pool.ranges[0]", "10.0.0.200-10.0.1.20 is not inside 10.0.0.0/24"},
		"range with network":  {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.0-10.0.0.9") }, "spec.pool.ranges[0]", "begin at 10.0.0.1"},
		"range with all":      {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.250-10.0.0.255") }, "spec.pool.ranges[0]", "end at 10.0.0.254"},
		"ranges overlap":      {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.10-10.0.0.20", "10.0.0.20-10.0.0.30") }, "spec.pool.ranges[1]", "10.0.0.20-10.0.0.30 overlaps 10.0.0.10-10.0.0.20, which is spec.pool.ranges[0]"},
		"exclude outside": {func(s *SubnetSpec) {
			s.Mode, s.Pool = ModePool, pool("10.0.0.10-10.0.0.20")
			s.Pool.Exclude = pool("10.0.0.20-10.0.0.21").Ranges
		}, "spec.pool.exclude[0]", "10.0.0.20-10.0.0.21 is not inside one range"},
		"excludes overlap": {func(s *SubnetSpec) {
			s.Mode, s.Pool = ModePool, pool("10.0.0.10-10.0.0.20")
			s.Pool.Exclude = pool("10.0.0.11", "10.0.0.11").Ranges
		}, "spec.pool.exclude[1]", "overlaps"},
		"allow": {func(s *SubnetSpec) { s.Mode, s.Pool = ModePool, pool("10.0.0.10-10.0.0.20"); s.Pool.Allow = "all" }, "spec.pool.allow", "(any or known)"},
		"many ranges": {func(s *SubnetSpec) {
			s.Mode, s.Pool = ModePool, &Pool{Ranges: slices.Repeat(pool("10.0.0.9").Ranges, 65)}
		}, "spec.pool.ranges", "has 65 entries, the limit is 64"},
		"advertise": {func(s *SubnetSpec) { s.Advertise = addr("::1") }, "spec.advertise", "is not an IPv4 address"},
	} {
		s := goodSubnet()
		tc.spoil(&s.Spec)
		err := s.Validate()
		var bad *Invalid
		switch {
		case tc.field == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.field == "":
		case !errors.As(err, &bad) || bad.Kind != "subnet" || len(bad.Errors) != 1 || bad.Errors[0].Field != tc.field || !strings.Contains(bad.Errors[0].Detail, tc.says):
			t.Errorf("%s: %v, want %s: … %s", name, err, tc.field, tc.says)
		}
	}
}

func TestSubnetLease(t *testing.T) {
	t.Parallel()
	s := goodSubnet()
	if s.Lease() != 10*time.Minute {
		t.Errorf("given: %v", s.Lease())
	}
	s.Spec.LeaseTime = 0
	if s.Lease() != DefaultLease {
		t.Errorf("default: %v", s.Lease())
	}
}
