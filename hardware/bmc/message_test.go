package bmc_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware/bmc"
)

// signed is a signature that another implementation made:
// printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 'correct horse battery staple'
const signed = "t=1700000000,v1=c0385f8b18e8d1ac37a3c0d93fa81ef49dc339ee11bf4170c61942141ce6cd98"

func TestVerify(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 0)
	body := `{"a":1}`
	if got := bmc.Sign(secret, at, []byte(body)); got != signed {
		t.Errorf("signed as %s, want %s", got, signed)
	}
	sum := strings.TrimPrefix(signed, "t=1700000000,v1=")
	for name, tc := range map[string]struct {
		secret, signature, body string
		now                     time.Time
		want                    error
	}{
		"good":             {secret, signed, body, at, nil},
		"order and spaces": {secret, "v1=" + sum + ", t=1700000000", body, at, nil},
		"capitals":         {secret, "t=1700000000,v1=" + strings.ToUpper(sum), body, at, nil},
		"another version":  {secret, signed + ",v2=abc", body, at, nil},
		"two secrets":      {secret, "t=1700000000,v1=00,v1=" + sum, body, at, nil},
		"5 minutes late":   {secret, signed, body, at.Add(bmc.MaxSkew), nil},
		"5 minutes early":  {secret, signed, body, at.Add(-bmc.MaxSkew), nil},
		"later":            {secret, signed, body, at.Add(bmc.MaxSkew + time.Second), bmc.ErrClock},
		"earlier":          {secret, signed, body, at.Add(-bmc.MaxSkew - time.Second), bmc.ErrClock},
		"years off":        {secret, signed, body, time.Time{}, bmc.ErrClock},
		"another secret":   {secret + "x", signed, body, at, bmc.ErrSignature},
		"no secret":        {"", bmc.Sign("", at, []byte(body)), body, at, bmc.ErrSignature},
		"another body":     {secret, signed, `{"a":2}`, at, bmc.ErrSignature},
		"another time":     {secret, strings.Replace(signed, "t=17", "t=18", 1), body, time.Unix(1800000000, 0), bmc.ErrSignature},
		"no time":          {secret, "v1=" + sum, body, at, bmc.ErrSignature},
		"no sum":           {secret, "t=1700000000", body, at, bmc.ErrSignature},
		"half a sum":       {secret, signed[:len(signed)-2], body, at, bmc.ErrSignature},
		"not hex":          {secret, signed[:len(signed)-2] + "zz", body, at, bmc.ErrSignature},
		"many sums":        {secret, "t=1700000000" + strings.Repeat(",v1=00", 4) + ",v1=" + sum, body, at, bmc.ErrSignature},
		"nothing":          {secret, "", body, at, bmc.ErrSignature},
	} {
		if err := bmc.Verify(tc.secret, tc.signature, []byte(tc.body), tc.now); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// FuzzVerify: what Sign makes is accepted, with any secret and body, and nothing is
// that does not hold what Sign makes for a time near enough.
func FuzzVerify(f *testing.F) {
	seeds := []string{signed, "", "t=,v1=", "v1=00,t=1", "t=1700000000,v1=" + strings.Repeat("00", 32), signed + "," + signed}
	for _, s := range seeds {
		f.Add(s, secret, []byte(`{"a":1}`), int64(1700000000))
	}
	f.Fuzz(func(t *testing.T, header, key string, body []byte, at int64) {
		at &= 1<<40 - 1
		when := time.Unix(at, 0)
		if err := bmc.Verify(key, bmc.Sign(key, when, body), body, when); (err == nil) != (key != "") {
			t.Errorf("our own signature: %v", err)
		}
		if bmc.Verify(key, header, body, when) != nil {
			return
		}
		for off := -bmc.MaxSkew; off <= bmc.MaxSkew; off += time.Second {
			if _, sum, _ := strings.Cut(bmc.Sign(key, when.Add(off), body), "v1="); strings.Contains(strings.ToLower(header), sum) {
				return
			}
		}
		t.Errorf("accepted %q", header)
	})
}
