package hardware

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// says checks an error of one value: what it contains, or that there is none.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
		t.Errorf("%q: %v, want %q", what, err, want)
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"m1": "", "a": "", "0": "", "rack-7-u12": "", strings.Repeat("a", 63): "",
		"":                      "is empty (give it a name",
		strings.Repeat("a", 64): "has 64 bytes, the limit is 63",
		"-a":                    "begins or ends with a dash",
		"a-":                    "begins or ends with a dash",
		"M1":                    `has 'M' (use lower-case letters`,
		"a.b":                   "has '.'",
		"a/b":                   "has '/'",
		"a b":                   "has ' '",
		"a\n":                   `has '\n'`,
		"ä":                     "has 'ä'",
		"\xff":                  "has '\ufffd'",
	} {
		says(t, name, ValidName(name), want)
	}
}

func TestValidHostname(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"m1": "", "M1.Example.ORG": "", "a.b.c": "", strings.Repeat("a.", 126) + "a": "",
		"":                             "host name label is empty",
		"a..b":                         "host name label is empty",
		"a.":                           "host name label is empty",
		"a_b":                          "has '_'",
		"-a.b":                         "dash",
		strings.Repeat("a", 64) + ".b": "the limit is 63",
		strings.Repeat("a.", 127):      "has 254 bytes, the limit is 253",
		"\u212a1":                      "has '\u212a'", // KELVIN SIGN, whose lower case is k
		"a\nb":                         `has '\n'`,
	} {
		says(t, name, ValidHostname(name), want)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 129)
	for _, tc := range []struct{ key, value, want string }{
		{"rack", "7", ""},
		{"example.org/Row_1", "", ""},
		{"", "x", "must have 1 to 128 bytes"},
		{long, "x", "must have 1 to 128 bytes"},
		{"k", long, `value of "k" has 129 bytes`},
		{"a b", "x", `has ' '`},
		{"a", "b\nc", `has '\n'`},
		{"a", "ü", "has 'ü'"},
	} {
		c := NewChecker("hardware", "m1")
		c.Meta(Meta{Name: "m1", Labels: map[string]string{tc.key: tc.value}})
		says(t, tc.key+"="+tc.value, c.Err(), tc.want)
	}
	many := map[string]string{}
	for i := range MaxLabels + 1 {
		many[fmt.Sprintf("k%d", i)] = "v"
	}
	c := NewChecker("hardware", "m1")
	c.Meta(Meta{Name: "m1", Labels: many})
	says(t, "many", c.Err(), "has 65 entries, the limit is 64")
}

// Err is nil, or everything at once in the same words each time.
func TestChecker(t *testing.T) {
	t.Parallel()
	c := NewChecker("hardware", "m1")
	c.Add("spec.a", nil)
	if err := c.Err(); err != nil {
		t.Errorf("nothing wrong: %v", err)
	}
	for range 20 {
		c := NewChecker("hardware", "m1")
		c.Meta(Meta{Name: "m1", Labels: map[string]string{"a b": "", "c d": "", "e f": ""}})
		c.Addf("spec.x", "is %d", 7)
		var bad *Invalid
		if !errors.As(c.Err(), &bad) || bad.Kind != "hardware" || bad.Name != "m1" || len(bad.Errors) != 4 {
			t.Fatalf("%+v", c.Err())
		}
		const want = `hardware "m1": metadata.labels: "a b"="" has ' ' (use letters, digits and - _ . /); ` +
			`metadata.labels: "c d"="" has ' ' (use letters, digits and - _ . /); ` +
			`metadata.labels: "e f"="" has ' ' (use letters, digits and - _ . /); spec.x: is 7`
		if bad.Error() != want {
			t.Fatalf("got  %s\nwant %s", bad, want)
		}
	}
}
