package metadata

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestSession(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	s := sessions{key: []byte("0123456789abcdef0123456789abcdef"), now: func() time.Time { return now }}
	here, there := netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.0.0.6")
	machine := func(uid, install string) *hardware.Hardware {
		return &hardware.Hardware{Meta: hardware.Meta{UID: uid}, Status: hardware.Status{Install: &hardware.InstallRef{UID: install}}}
	}
	m := machine("u1", "w1")
	token := s.issue(m, here, time.Minute)
	other := sessions{key: []byte("another key"), now: s.now}
	raw, err := base64.URLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	longer := append([]byte{}, raw...)
	longer[sessionEnd-2]++ // four minutes more
	for name, bad := range map[string]string{
		"empty": "", "cut": token[:len(token)-4], "more": token + "AAAA", "no base64": "!" + token[1:],
		"another key": other.issue(m, here, time.Minute), "another address": s.issue(m, there, time.Minute),
		"another machine": s.issue(machine("u2", "w1"), here, time.Minute), "an earlier install": s.issue(machine("u1", "w0"), here, time.Minute),
		"parts moved": s.issue(machine("u1\x00w1", ""), here, time.Minute), "longer": base64.URLEncoding.EncodeToString(longer),
		"long": strings.Repeat("A", 10_000), "zeroes": base64.URLEncoding.EncodeToString(make([]byte, len(raw))),
	} {
		if s.valid(bad, m, here) {
			t.Errorf("%s: is taken", name)
		}
	}
	if s.valid(token, m, there) {
		t.Error("is taken from another address")
	}
	now = now.Add(time.Minute - time.Second)
	if !s.valid(token, m, here) {
		t.Error("is refused in its last second")
	}
	now = now.Add(time.Second)
	if s.valid(token, m, here) {
		t.Error("is taken after its end")
	}
}

// FuzzSession: only what was issued is taken, and no token of one machine by
// another.
func FuzzSession(f *testing.F) {
	s := sessions{key: []byte("0123456789abcdef0123456789abcdef"), now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	from := netip.MustParseAddr("10.0.0.5")
	m := &hardware.Hardware{Meta: hardware.Meta{UID: "u1"}}
	good := s.issue(m, from, time.Hour)
	f.Add(good, "u1")
	f.Add(good, "u2")
	f.Add("", "")
	f.Add(good[:40], "u1\x00u1")
	f.Fuzz(func(t *testing.T, token, uid string) {
		h := &hardware.Hardware{Meta: hardware.Meta{UID: uid}}
		if s.valid(token, h, from) && (token != good || uid != "u1") {
			// base64 has more than one spelling of the bits that are left over
			a, _ := base64.URLEncoding.DecodeString(token)
			b, _ := base64.URLEncoding.DecodeString(good)
			if uid != "u1" || string(a) != string(b) {
				t.Fatalf("%q is taken for %q", token, uid)
			}
		}
	})
}
