package hardware

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainCases are hostile texts and what becomes of them within eight bytes.
func plainCases() map[string]string {
	return map[string]string{
		"":                        "",
		"disk":                    "disk",
		"12345678":                "12345678",
		"123456789":               "12345678",
		"a\x1b[2Jb":               "a [2Jb",
		"a\r\nb\tc\x00":           "a  b c ",
		"a\u0085\u009bb":          "a  b",
		"\x7f":                    " ",
		"€€€":                     "€€",
		"1234567ü":                "1234567",
		"\xff\xfe":                "\ufffd\ufffd",
		"\xf0\x9f":                "\ufffd\ufffd",
		"\U0001f511":              "\U0001f511",
		strings.Repeat("x", 1000): "xxxxxxxx",
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for in, want := range plainCases() {
		if got := PlainText(in, 8); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := PlainText("x", 0); got != "" {
		t.Errorf("nothing allowed: %q", got)
	}
}

// FuzzPlainText: valid UTF-8, no control characters, at most limit bytes; plain
// text that fits stays, and doing it twice changes nothing.
func FuzzPlainText(f *testing.F) {
	seeds := plainCases()
	if len(seeds) == 0 {
		f.Fatal("empty corpus")
	}
	for s := range seeds {
		f.Add(s, uint8(8))
	}
	f.Fuzz(func(t *testing.T, s string, limit uint8) {
		got := PlainText(s, int(limit))
		control := func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) }
		if !utf8.ValidString(got) || strings.ContainsFunc(got, control) || len(got) > int(limit) {
			t.Fatalf("%q, %d: %q", s, limit, got)
		}
		if PlainText(got, int(limit)) != got {
			t.Fatalf("%q is changed again", got)
		}
		if utf8.ValidString(s) && !strings.ContainsFunc(s, control) && len(s) <= int(limit) && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

// TestFactsCap fills every text of the facts, found by reflection, with what a
// hostile machine would send: a field that is added later and not capped fails.
func TestFactsCap(t *testing.T) {
	t.Parallel()
	hostile := strings.Repeat("\x1b]0;\xff\n", 1000)
	f := &Facts{Disks: make([]DiskFact, 1000), NICs: make([]NICFact, 1000)}
	spoil := func(v reflect.Value) {
		for i := range v.NumField() {
			if field := v.Field(i); field.Kind() == reflect.String {
				field.SetString(hostile)
			}
		}
	}
	spoil(reflect.ValueOf(f).Elem())
	for i := range f.Disks {
		spoil(reflect.ValueOf(&f.Disks[i]).Elem())
		spoil(reflect.ValueOf(&f.NICs[i]).Elem())
	}
	f.Cap()
	if len(f.Disks) != maxFactDisks || len(f.NICs) != maxFactNICs {
		t.Errorf("%d disks, %d NICs", len(f.Disks), len(f.NICs))
	}
	var check func(name string, v reflect.Value)
	check = func(name string, v reflect.Value) {
		for i := range v.NumField() {
			field, at := v.Field(i), name+"."+v.Type().Field(i).Name
			switch field.Kind() {
			case reflect.String:
				if s := field.String(); len(s) > maxFactText || s != PlainText(s, maxFactText) {
					t.Errorf("%s is not capped: %.20q", at, s)
				}
			case reflect.Slice:
				for j := range min(field.Len(), 2) {
					check(at, field.Index(field.Len()-1-j))
				}
			}
		}
	}
	check("facts", reflect.ValueOf(f).Elem())
	if text, err := json.Marshal(f); err != nil || len(text) > 512<<10 {
		t.Errorf("the largest facts have %d bytes, %v", len(text), err)
	}
	small := &Facts{Vendor: "QEMU", Disks: []DiskFact{{Path: "/dev/vda"}}}
	small.Cap()
	bmc := &Facts{BMC: &BMCFact{Address: netip.MustParseAddr("fe80::1%" + hostile), VLAN: 4096}}
	bmc.Cap()
	if bmc.BMC.Address.String() != "fe80::1" || bmc.BMC.VLAN != 0 {
		t.Errorf("the BMC became %.80q", fmt.Sprint(*bmc.BMC))
	}
	if small.Vendor != "QEMU" || len(small.Disks) != 1 || small.Disks[0].Path != "/dev/vda" {
		t.Errorf("honest facts became %+v", small)
	}
}
