package hardware

import (
	"strings"
	"testing"
	"time"
)

func TestLike(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"Dell Inc.", "dell inc.", true},
		{"dell*", "Dell Inc.", true},
		{"*r640", "PowerEdge R640", true},
		{"*edge*", "PowerEdge R640", true},
		{"*a*b*c", "xaxbxc", true},
		{"*a*b*c", "xaxbxcx", false},
		{"power????", "PowerEdge", true},
		{"power???", "PowerEdge", false},
		{"?", "é", true},
		{"*", "", true},
		{"**", "anything", true},
		{"", "", true},
		{"", "a", false},
		{"a?", "a", false},
		{"a", "ab", false},
		{"(a|b)+", "a", false},
		{"[ab]", "a", false},
		{"R.40", "R640", false},
		{`\*`, "*", false},
	} {
		if got := like(tc.pattern, tc.text); got != tc.want {
			t.Errorf("%q like %q: %v", tc.text, tc.pattern, got)
		}
	}
}

// TestLikeIsQuick: the worst pattern that is let in, against the longest fact, is a
// matter of microseconds.
func TestLikeIsQuick(t *testing.T) {
	t.Parallel()
	pattern, text := strings.Repeat("*a", maxPattern/2-1)+"*b", strings.Repeat("a", maxFactText)
	began := time.Now()
	for range 1000 {
		if like(pattern, text) {
			t.Fatal("matched")
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("1000 matches took %v", took)
	}
}

// FuzzLike: a text is like itself and like itself with any part starred.
func FuzzLike(f *testing.F) {
	for _, s := range []string{"", "Dell Inc.", "é?", "a*b", "\xff\xfe", "İ"} {
		f.Add(s, 1, 3)
	}
	f.Fuzz(func(t *testing.T, s string, from, to int) {
		r := []rune(s)
		if len(r) > maxFactText {
			return
		}
		if from, to = min(max(from, 0), len(r)), min(max(to, 0), len(r)); from > to {
			from, to = to, from
		}
		if !strings.ContainsAny(s, "*?") && !like(s, s) {
			t.Errorf("%q is not like itself", s)
		}
		if starred := string(r[:from]) + "*" + string(r[to:]); !like(starred, s) && !strings.ContainsAny(s, "*?") {
			t.Errorf("%q is not like %q", s, starred)
		}
	})
}
