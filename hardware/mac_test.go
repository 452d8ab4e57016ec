package hardware

import (
	"encoding/json"
	"strings"
	"testing"
)

// macSpellings are texts and what they mean; empty: no MAC address.
func macSpellings() map[string]string {
	return map[string]string{
		"52:54:00:12:34:56":       "52:54:00:12:34:56",
		"52-54-00-AB-CD-EF":       "52:54:00:ab:cd:ef",
		"5254.00ab.cdef":          "52:54:00:ab:cd:ef",
		"525400ABcdef":            "52:54:00:ab:cd:ef",
		"00:00:00:00:00:00":       "00:00:00:00:00:00",
		"ff:ff:ff:ff:ff:ff":       "ff:ff:ff:ff:ff:ff",
		"":                        "",
		"m1":                      "",
		"52:54:00:12:34":          "",
		"52:54:00:12:34:56:78":    "",
		"52:54:00:12:34:5g":       "",
		"52:54-00:12:34:56":       "",
		"52:::::5400123456":       "",
		"52:5:400:12:34:56":       "",
		"5254..00abcdef":          "",
		"5254.00.abcdef":          "",
		" 52:54:00:12:34:56":      "",
		"52:54:00:12:34:56\n":     "",
		"fe80::5054:ff:fe12:3456": "",
		"5254001234567":           "",
		"５２５４":                    "",
	}
}

func TestParseMAC(t *testing.T) {
	t.Parallel()
	for in, want := range macSpellings() {
		m, err := ParseMAC(in)
		switch {
		case want == "" && (err == nil || !m.IsZero() || !strings.Contains(err.Error(), "(write it as 52:54:00:12:34:56)")):
			t.Errorf("%q: %v, %v", in, m, err)
		case want != "" && (err != nil || m.String() != want):
			t.Errorf("%q: %v, %v, want %s", in, m, err, want)
		}
	}
	if _, err := ParseMAC(strings.Repeat("x", 10_000)); err == nil || len(err.Error()) > 200 {
		t.Errorf("a long text makes an error of %d bytes", len(err.Error()))
	}
}

func TestMACIs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		m          MAC
		zero, many bool
	}{
		{MAC{}, true, false},
		{MAC{0x52, 0x54}, false, false},
		{MAC{0x01, 0x00, 0x5e, 0, 0, 1}, false, true},
		{MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, false, true},
	} {
		if tc.m.IsZero() != tc.zero || tc.m.IsMulticast() != tc.many {
			t.Errorf("%s: zero %t, group %t", tc.m, tc.m.IsZero(), tc.m.IsMulticast())
		}
	}
}

func TestMACText(t *testing.T) {
	t.Parallel()
	type record struct {
		MAC MAC `json:"mac"`
	}
	for in, want := range map[string]string{
		`{"mac":"52-54-00-12-34-56"}`: `{"mac":"52:54:00:12:34:56"}`,
		`{"mac":""}`:                  `{"mac":""}`,
	} {
		r := record{MAC{1, 2, 3}}
		if err := json.Unmarshal([]byte(in), &r); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(r); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	r := record{MAC{1, 2, 3}}
	if err := json.Unmarshal([]byte(`{"mac":"x"}`), &r); err == nil || r.MAC != (MAC{1, 2, 3}) {
		t.Errorf("after an error: %v, %v", r.MAC, err)
	}
}

// FuzzParseMAC: what is read is written in one form, and that form is read as the
// same address.
func FuzzParseMAC(f *testing.F) {
	seeds := macSpellings()
	if len(seeds) == 0 {
		f.Fatal("empty corpus")
	}
	for s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMAC(s)
		if err != nil {
			if !m.IsZero() {
				t.Fatalf("%q: %v with %v", s, m, err)
			}
			return
		}
		digits := func(s string) string {
			return strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "").Replace(s))
		}
		if digits(s) != digits(m.String()) {
			t.Fatalf("%q became %s", s, m)
		}
		if again, err := ParseMAC(m.String()); err != nil || again != m {
			t.Fatalf("%s became %v, %v", m, again, err)
		}
	})
}
