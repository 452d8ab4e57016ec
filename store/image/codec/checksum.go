package codec

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// Checksum is the digest of an image's source bytes, that is of the file as it
// is downloaded, before decompression. The zero value means none.
type Checksum struct {
	// Algorithm is "sha256", "sha512" or "md5"; empty in the zero value.
	Algorithm string
	// Digest is the raw digest, 32, 64 or 16 bytes.
	Digest []byte
}

// digestSizes are the supported algorithms with the size of their digest in bytes.
var digestSizes = map[string]int{"sha256": sha256.Size, "sha512": sha512.Size, "md5": md5.Size}

// ParseChecksum reads "sha256:<64 hex digits>", "sha512:<128 hex digits>" or
// "md5:<32 hex digits>".
// The empty string is the zero Checksum. The error says what is wrong and what
// a right one looks like.
func ParseChecksum(s string) (Checksum, error) {
	if s == "" {
		return Checksum{}, nil
	}
	algorithm, digits, found := strings.Cut(s, ":")
	if !found {
		return Checksum{}, fmt.Errorf("checksum %q names no algorithm (%s)", s, guessChecksum(s))
	}
	size, known := digestSizes[algorithm]
	if !known {
		return Checksum{}, fmt.Errorf("checksum algorithm %q is not supported (use sha256:<hex> or sha512:<hex>)", algorithm)
	}
	digest, err := hex.DecodeString(digits)
	if err != nil {
		return Checksum{}, fmt.Errorf("checksum %q: the part after the colon is not hexadecimal (use the output of %ssum)", s, algorithm)
	}
	if len(digest) != size {
		return Checksum{}, fmt.Errorf("checksum %q has %d hexadecimal digits, %s has %d", s, len(digits), algorithm, 2*size)
	}
	return Checksum{Algorithm: algorithm, Digest: digest}, nil
}

// guessChecksum is the remedy for a checksum without an algorithm.
func guessChecksum(s string) string {
	for name, size := range digestSizes {
		if _, err := hex.DecodeString(s); err == nil && len(s) == 2*size {
			return "write it as " + name + ":" + s
		}
	}
	return "write it as sha256:<hex> or sha512:<hex>"
}

// IsZero reports whether c is the absence of a checksum.
func (c Checksum) IsZero() bool { return c.Algorithm == "" }

// String is the form that [ParseChecksum] reads.
func (c Checksum) String() string {
	if c.IsZero() {
		return ""
	}
	return c.Algorithm + ":" + hex.EncodeToString(c.Digest)
}

// Weak reports whether it protects from accidents only: whoever makes an image can
// make another one with the same MD5 (RFC 6151 section 2.1).
func (c Checksum) Weak() bool { return c.Algorithm == "md5" }

// newHash returns the hash to feed, nil for the zero Checksum.
func (c Checksum) newHash() hash.Hash {
	switch c.Algorithm {
	case "sha256":
		return sha256.New()
	case "sha512":
		return sha512.New()
	case "md5":
		return md5.New()
	}
	return nil
}
