package workflow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// A boot token is made of the boot's id, the machine's uid and a MAC over both
// under the installation's token key. So the same boot always has the same token
// (retransmissions, HEAD requests and refetches get it again), nothing secret is
// stored per boot, and any appliance of the installation can judge it.

const tokenPrefix = "rs1"

// bootToken is the token of b.
func bootToken(key []byte, b *hardware.Boot) string {
	head := tokenPrefix + "." + b.ID + "." + b.Hardware
	return head + "." + tokenMAC(key, head)
}

// parseToken returns the boot and the machine that a genuine token names.
func parseToken(key []byte, token string) (boot, uid string, ok bool) {
	if len(token) > 256 {
		return "", "", false
	}
	p := strings.Split(token, ".")
	if len(p) != 4 || p[0] != tokenPrefix {
		return "", "", false
	}
	want := tokenMAC(key, strings.Join(p[:3], "."))
	return p[1], p[2], hmac.Equal([]byte(want), []byte(p[3]))
}

func tokenMAC(key []byte, head string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("boot token\x00" + head))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}
