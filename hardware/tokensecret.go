package hardware

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"strings"
)

// A token's secret is rst_<id>_<random>: who finds one in a log knows what it is, and
// with the id an administrator finds the record to delete. The random part has 256
// bits, so one SHA-256 is enough at rest: bcrypt and its kin slow down the guessing
// of passwords that people chose, which nobody can do with 2^256, and would let
// anybody who sends wrong tokens use up our CPU.
const (
	tokenPrefix      = "rst_"
	tokenIDBytes     = 10
	tokenSecretBytes = 32
	tokenIDLen       = 16
	tokenSecretLen   = 52
	// TokenLen is the length of every secret, in bytes.
	TokenLen = len(tokenPrefix) + tokenIDLen + 1 + tokenSecretLen
)

// tokenText is base 32 in lower case: a double click selects all of it, and no
// letter is taken for a digit.
func tokenText() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

// TokenHash is what is kept of a secret.
type TokenHash [sha256.Size]byte

// HashToken is the hash of a whole secret.
func HashToken(secret string) TokenHash { return sha256.Sum256([]byte(secret)) }

// Equal compares in constant time.
func (h TokenHash) Equal(o TokenHash) bool { return subtle.ConstantTimeCompare(h[:], o[:]) == 1 }

// NewTokenSecret makes a secret and its id.
func NewTokenSecret() (secret, id string) {
	var b [tokenIDBytes + tokenSecretBytes]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	id = tokenText().EncodeToString(b[:tokenIDBytes])
	return tokenPrefix + id + "_" + tokenText().EncodeToString(b[tokenIDBytes:]), id
}

// ParseToken finds the id in a secret, or says what is wrong with its shape, without
// repeating any of it.
func ParseToken(secret string) (id string, err error) {
	rest, ok := strings.CutPrefix(secret, tokenPrefix)
	switch {
	case !ok:
		return "", fmt.Errorf("a token begins with %s", tokenPrefix)
	case len(secret) != TokenLen:
		return "", fmt.Errorf("a token has %d characters, this has %d (is it cut short?)", TokenLen, len(secret))
	case rest[tokenIDLen] != '_':
		return "", fmt.Errorf("a token is %s, an id, _ and a secret", tokenPrefix)
	}
	for i, c := range []byte(rest) {
		if i != tokenIDLen && (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return "", fmt.Errorf("a token has lower-case letters and the digits 2 to 7")
		}
	}
	return rest[:tokenIDLen], nil
}

// LiveToken is a token that may be used, as those who check secrets see it.
type LiveToken struct {
	Token *Token
	Hash  TokenHash
	// Selector is the token's, read.
	Selector Selector
	// Revoked is closed when the token is deleted.
	Revoked <-chan struct{}
}
