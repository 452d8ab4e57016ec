package fat

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Attributes of a directory entry.
const (
	attrFile  = 0x20 // to be archived, as every new file
	attrLabel = 0x08
	attrLong  = 0x0f
)

// plain reports whether FAT can have s as a long name without any translation.
func plain(s string) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s[0] != '.' && s[len(s)-1] != '.'
}

// shortName pads a label to its eleven characters.
func shortName(s string) [11]byte {
	var out [11]byte
	copy(out[:], s+strings.Repeat(" ", 11))
	return out
}

// alias is the short name of a file with a long one: six characters and a number.
// Nothing reads it.
func alias(name string, taken map[[11]byte]bool) [11]byte {
	base := strings.ToUpper(strings.ReplaceAll(name, ".", ""))
	for n := 1; ; n++ {
		tail := fmt.Sprintf("~%d", n)
		out := shortName(base[:min(len(base), 8-len(tail))] + tail)
		if !taken[out] {
			taken[out] = true
			return out
		}
	}
}

// entry is a directory entry.
func entry(name [11]byte, attributes byte, first uint16, size int) []byte {
	b := make([]byte, 32)
	copy(b, name[:])
	b[11] = attributes
	le := binary.LittleEndian
	for _, at := range []int{16, 18, 24} { // created, read, written
		le.PutUint16(b[at:], created)
	}
	le.PutUint16(b[26:], first)
	le.PutUint32(b[28:], uint32(size))
	return b
}

// longName are the entries before that of the file which hold its long name, the end
// of the name first: 13 characters of UTF-16 each.
func longName(name string, short [11]byte) []byte {
	var sum byte
	for _, c := range short {
		sum = sum>>1 | sum<<7
		sum += c
	}
	n := (len(name) + 12) / 13
	var out []byte
	for i := n; i >= 1; i-- {
		b := make([]byte, 32)
		b[0], b[11], b[13] = byte(i), attrLong, sum
		if i == n {
			b[0] |= 0x40
		}
		at := (i - 1) * 13
		for k, place := range []int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} {
			c := uint16(0xffff) // after the end of the name
			switch {
			case at+k < len(name):
				c = uint16(name[at+k])
			case at+k == len(name):
				c = 0
			}
			binary.LittleEndian.PutUint16(b[place:], c)
		}
		out = append(out, b...)
	}
	return out
}
