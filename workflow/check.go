package workflow

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// ValidChecksum says why s is no checksum, or nil: sha256:<64 hex digits>,
// sha512:<128 hex digits>, or md5:<32 hex digits>, which is weak.
func ValidChecksum(s string) error {
	alg, digits, _ := strings.Cut(s, ":")
	want := map[string]int{"sha256": 32, "sha512": 64, "md5": 16}[alg]
	b, err := hex.DecodeString(digits)
	if want == 0 || err != nil || len(b) != want {
		return fmt.Errorf("%.80q is no checksum (sha256:<64 hex digits> or sha512:<128 hex digits>)", s)
	}
	return nil
}

// WeakChecksum reports whether a checksum protects from accidents only, and not from
// whoever makes the image.
func WeakChecksum(s string) bool { return strings.HasPrefix(s, "md5:") }

// validURL accepts absolute http and https URLs without credentials: those
// would end up in logs.
func validURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%.120q is not an http(s) URL", s)
	}
	if u.User != nil {
		return fmt.Errorf("holds a password in the URL (serve the image without one, or add it with `rackstrap image add`)")
	}
	return nil
}
