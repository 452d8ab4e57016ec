package hardware

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// MAC is an EUI-48 hardware address in network order. The zero value means
// "none".
type MAC [6]byte

// ParseMAC reads the usual spellings of an EUI-48: 52:54:00:12:34:56,
// 52-54-00-12-34-56, 5254.0012.3456 and 525400123456, in either case.
func ParseMAC(s string) (MAC, error) {
	bad := func() (MAC, error) {
		return MAC{}, fmt.Errorf("%.40q is not a MAC address (write it as 52:54:00:12:34:56)", s)
	}
	digits, every := s, 0
	switch {
	case len(s) == 17 && (s[2] == ':' || s[2] == '-'):
		digits, every = strings.ReplaceAll(s, s[2:3], ""), 2
	case len(s) == 14 && s[4] == '.':
		digits, every = strings.ReplaceAll(s, ".", ""), 4
	}
	if len(digits) != 12 || (every > 0 && !separated(s, every)) {
		return bad()
	}
	var m MAC
	if _, err := hex.Decode(m[:], []byte(digits)); err != nil {
		return bad()
	}
	return m, nil
}

// separated reports whether the same byte stands after each group of n digits.
func separated(s string, n int) bool {
	for i := n; i < len(s); i += n + 1 {
		if s[i] != s[n] {
			return false
		}
	}
	return true
}

// String is the lower-case colon form, 52:54:00:12:34:56.
func (m MAC) String() string {
	const digits = "0123456789abcdef"
	var out [17]byte // without fmt: long lists have many
	for i, b := range m {
		out[3*i], out[3*i+1] = digits[b>>4], digits[b&15]
		if i < 5 {
			out[3*i+2] = ':'
		}
	}
	return string(out[:])
}

// IsZero reports whether m is "none".
func (m MAC) IsZero() bool { return m == MAC{} }

// IsMulticast reports the group bit: such an address never identifies a NIC
// (IEEE 802-2014, section 8.2).
func (m MAC) IsMulticast() bool { return m[0]&1 == 1 }

// MarshalText writes the colon form; the zero MAC is empty text.
func (m MAC) MarshalText() ([]byte, error) {
	if m.IsZero() {
		return nil, nil
	}
	return []byte(m.String()), nil
}

// UnmarshalText is ParseMAC; empty text is the zero MAC.
func (m *MAC) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*m = MAC{}
		return nil
	}
	v, err := ParseMAC(string(b))
	if err != nil {
		return err
	}
	*m = v
	return nil
}
