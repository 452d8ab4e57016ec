package workflow

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID makes a ULID (48 bits of milliseconds, 80 random bits, Crockford base 32,
// 26 characters), which sorts by time.
func NewID(now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails since Go 1.24
	var out [26]byte
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	for i := 25; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// idTime is when an ID was made; the zero time for what is none.
func idTime(id string) time.Time {
	if len(id) != 26 {
		return time.Time{}
	}
	var ms int64
	for _, c := range id[:10] {
		i := strings.IndexRune(crockford, c)
		if i < 0 {
			return time.Time{}
		}
		ms = ms<<5 | int64(i)
	}
	return time.UnixMilli(ms)
}
