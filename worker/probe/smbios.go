package probe

import (
	"bytes"
	"strings"
)

// processor is the version string of the first processor in the SMBIOS tables (SMBIOS
// 3.6, section 7.5): /proc/cpuinfo names the model on amd64, and on arm64 only numbers.
func processor(table []byte) string {
	const (
		typeProcessor = 4
		typeEnd       = 127
		version       = 0x10
	)
	for len(table) >= 4 && table[0] != typeEnd {
		kind, size := table[0], int(table[1])
		if size < 4 || size > len(table) {
			return ""
		}
		// The strings follow the formatted part; two zeros end them (section 6.1.3).
		end := bytes.Index(table[size:], []byte{0, 0})
		if end < 0 {
			return ""
		}
		if kind == typeProcessor && size > version {
			texts := strings.Split(string(table[size:size+end]), "\x00")
			if n := int(table[version]); n > 0 && n <= len(texts) {
				return strings.Join(strings.Fields(texts[n-1]), " ")
			}
		}
		table = table[size+end+2:]
	}
	return ""
}
