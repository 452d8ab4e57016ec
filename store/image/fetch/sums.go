package fetch

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// MaxSums bounds a list of checksums, in bytes.
const MaxSums = 1 << 20

// FindSum finds the checksum of the file that a URL names in the text of a list:
// lines `<hex>  name`, `<hex> *name` or `SHA256 (name) = <hex>`, or nothing but one
// checksum. It returns sha512:<hex>, else sha256:<hex>, else md5:<hex>. No entry, or
// two that differ, are an error.
func FindSum(list []byte, fileURL string) (string, error) {
	u, err := url.Parse(fileURL)
	if err != nil {
		return "", fmt.Errorf("%.120q is no URL", fileURL)
	}
	name := path.Base(u.Path)
	found := map[string]string{} // by algorithm
	lines := 0
	alone := ""
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(line)
		sum, of := sumLine(line)
		if sum == "" {
			continue
		}
		lines++
		if of == "" {
			alone = sum
			continue
		}
		if path.Base(of) != name {
			continue
		}
		alg, _, _ := strings.Cut(sum, ":")
		if other := found[alg]; other != "" && other != sum {
			return "", fmt.Errorf("the list of checksums has two for %.100q", name)
		}
		found[alg] = sum
	}
	switch {
	case found["sha512"] != "":
		return found["sha512"], nil
	case found["sha256"] != "":
		return found["sha256"], nil
	case found["md5"] != "":
		return found["md5"], nil
	case alone != "" && lines == 1:
		return alone, nil
	}
	return "", fmt.Errorf("the list of checksums has no sha256, sha512 or md5 of %.100q (%d of other files)", name, lines)
}

// sumLine is the checksum of a line and the file it is of.
func sumLine(line string) (sum, name string) {
	if alg, rest, ok := strings.Cut(line, " ("); ok && (alg == "SHA256" || alg == "SHA512" || alg == "MD5") {
		if name, digits, ok := strings.Cut(rest, ") = "); ok {
			return withAlgorithm(digits), name
		}
	}
	digits, name, _ := strings.Cut(line, " ")
	return withAlgorithm(digits), strings.TrimPrefix(strings.TrimSpace(name), "*")
}

func withAlgorithm(digits string) string {
	if _, err := hex.DecodeString(digits); err != nil {
		return ""
	}
	switch len(digits) {
	case 32:
		return "md5:" + strings.ToLower(digits)
	case 64:
		return "sha256:" + strings.ToLower(digits)
	case 128:
		return "sha512:" + strings.ToLower(digits)
	}
	return ""
}
