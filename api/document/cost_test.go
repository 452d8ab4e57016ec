package document

import (
	"strings"
	"testing"
)

// hostile are the worst that fits the body of a request, 4 MiB.
func hostile() map[string]string {
	const body = 4 << 20
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (body-len(head)-len(tail))/len(part)) + tail
	}
	return map[string]string{
		"numbers":  fill("[", "0,", "0]"),
		"maps":     fill("[", "{},", "{}]"),
		"deep":     fill("", "[", ""),
		"deepMaps": fill("", `{"a":`, ""),
		"text":     fill(`["`, "x", `"]`),
		"keys":     fill("{", `"":0,`, `"a":1}`),
		"lines":    fill("", "- a\n", ""),
		"empty":    fill("", "---\n", ""),
		"indent":   fill("", "a: {b: [", ""),
		"anchors":  fill("a: &a [x,x]\nb: [", "*a,", "*a]\n"),
		"comments": fill("", "#a\n", ""),
	}
}

// BenchmarkHostile: what the worst bodies cost. B/op is all that was allocated, live
// or not.
func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		for form, read := range map[string]func([]byte, Limits) ([]*Node, error){"yaml": YAML, "json": JSON} {
			b.Run(name+"/"+form, func(b *testing.B) {
				b.ReportAllocs()
				data := []byte(text)
				for range b.N {
					_, _ = read(data, DefaultLimits())
				}
			})
		}
	}
}
