package hardware

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddrRange reads 10.0.0.100-10.0.0.199, or one address.
func ParseAddrRange(s string) (AddrRange, error) {
	from, to, two := strings.Cut(s, "-")
	a, err := netip.ParseAddr(strings.TrimSpace(from))
	b := a
	if err == nil && two {
		b, err = netip.ParseAddr(strings.TrimSpace(to))
	}
	if err != nil || !a.Is4() || !b.Is4() {
		return AddrRange{}, fmt.Errorf("%.60q is not a range of IPv4 addresses (write it as 10.0.0.100-10.0.0.199, or as one address)", s)
	}
	if b.Less(a) {
		return AddrRange{}, fmt.Errorf("%s ends before it begins (did you mean %s-%s?)", s, b, a)
	}
	return AddrRange{From: a, To: b}, nil
}

// String is the range as ParseAddrRange reads it.
func (r AddrRange) String() string {
	if r.From == r.To {
		return r.From.String()
	}
	return r.From.String() + "-" + r.To.String()
}

// Contains reports whether a is in the range.
func (r AddrRange) Contains(a netip.Addr) bool {
	return r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

// Overlaps reports whether the two have an address in common.
func (r AddrRange) Overlaps(o AddrRange) bool {
	return r.From.Compare(o.To) <= 0 && o.From.Compare(r.To) <= 0
}

// MarshalText implements encoding.TextMarshaler.
func (r AddrRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *AddrRange) UnmarshalText(b []byte) (err error) {
	*r, err = ParseAddrRange(string(b))
	return err
}

// Size is how many addresses the range has.
func (r AddrRange) Size() int {
	if !r.From.Is4() || !r.To.Is4() || r.To.Less(r.From) {
		return 0
	}
	a, b := r.From.As4(), r.To.As4()
	return int(binary.BigEndian.Uint32(b[:])-binary.BigEndian.Uint32(a[:])) + 1
}
