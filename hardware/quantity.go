package hardware

import (
	"fmt"
	"math/big"
	"strings"
)

// Quantity is a number of bytes as people write it: 64Gi, 1.5T, 512Mi, 1000000.
// The suffixes are those of Kubernetes: Ki Mi Gi Ti Pi Ei are powers of 1024,
// k M G T P E powers of 1000. Quantities are compared as numbers: 1024Mi is 1Gi.
type Quantity string

// quantitySuffixes in the order in which they are tried: Ki before K's relatives.
func quantitySuffixes() []struct {
	text  string
	scale int64
} {
	return []struct {
		text  string
		scale int64
	}{
		{"Ki", 1 << 10},
		{"Mi", 1 << 20},
		{"Gi", 1 << 30},
		{"Ti", 1 << 40},
		{"Pi", 1 << 50},
		{"Ei", 1 << 60},
		{"k", 1e3},
		{"M", 1e6},
		{"G", 1e9},
		{"T", 1e12},
		{"P", 1e15},
		{"E", 1e18},
	}
}

// Bytes is the quantity as a number, rounded up; 0 for an empty one. An error
// names the value and how to write it.
func (q Quantity) Bytes() (int64, error) {
	bad := fmt.Errorf("%.40q is no size (write it as 64Gi, 1.5T or a number of bytes)", string(q))
	if q == "" {
		return 0, nil
	}
	digits, scale := string(q), int64(1)
	for _, s := range quantitySuffixes() {
		if d, ok := strings.CutSuffix(digits, s.text); ok {
			digits, scale = d, s.scale
			break
		}
	}
	if digits == "" || len(digits) > 24 || strings.Trim(digits, "0123456789.") != "" || digits[0] == '.' {
		return 0, bad
	}
	n, ok := new(big.Rat).SetString(digits)
	if !ok {
		return 0, bad
	}
	n.Mul(n, new(big.Rat).SetInt64(scale))
	whole := new(big.Int).Div(new(big.Int).Add(n.Num(), new(big.Int).Sub(n.Denom(), big.NewInt(1))), n.Denom())
	if !whole.IsInt64() {
		return 0, bad
	}
	return whole.Int64(), nil
}
