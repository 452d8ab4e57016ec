package metadata

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// maxSession is the longest life of a session token, six hours as on EC2.
const maxSession = 6 * time.Hour

// sessions makes and checks IMDSv2 session tokens. A token is its end and a MAC
// over that, the machine, its install and the asking address; nothing is kept of
// it, so asking for many costs nobody anything.
type sessions struct {
	key []byte
	now func() time.Time
}

const sessionEnd = 8 // bytes

func (s sessions) issue(h *hardware.Hardware, from netip.Addr, life time.Duration) string {
	end := binary.BigEndian.AppendUint64(nil, uint64(s.now().Add(life).Unix()))
	return base64.URLEncoding.EncodeToString(append(end, s.mac(end, h, from)...))
}

// valid reports whether token was issued to that machine, as it is installed now,
// at that address, and has not ended.
func (s sessions) valid(token string, h *hardware.Hardware, from netip.Addr) bool {
	if len(token) > 128 {
		return false
	}
	b, err := base64.URLEncoding.DecodeString(token)
	if err != nil || len(b) != sessionEnd+sha256.Size {
		return false
	}
	end := b[:sessionEnd]
	return hmac.Equal(b[sessionEnd:], s.mac(end, h, from)) && s.now().Unix() < int64(binary.BigEndian.Uint64(end))
}

func (s sessions) mac(end []byte, h *hardware.Hardware, from netip.Addr) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("ec2 session\x00" + h.Meta.UID + "\x00" + instanceID(h) + "\x00" + from.String() + "\x00"))
	m.Write(end)
	return m.Sum(nil)
}
