package document

import (
	"encoding/json"
	"reflect"
	"testing"
)

func parse1(t testing.TB, text string) *Node {
	t.Helper()
	docs, err := JSON([]byte(text), DefaultLimits())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if len(docs) == 0 {
		return &Node{Type: Null}
	}
	return docs[0]
}

func mergeRows() [][3]string {
	return [][3]string{
		{`{"a":1,"b":2}`, `{}`, `{"a":1,"b":2}`},
		{`{"a":1,"b":2}`, `{"b":null}`, `{"a":1}`},
		{`{"a":1}`, `{"b":null}`, `{"a":1}`},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":null,"d":{"e":null,"f":3}}}`, `{"a":{"c":2,"d":{"f":3}}}`},
		{`{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`},
		{`{"a":[{"b":1}]}`, `{"a":[{"b":null}]}`, `{"a":[{"b":null}]}`},
		{`{"a":1}`, `{"a":{"b":2}}`, `{"a":{"b":2}}`},
		{`{"a":{"b":2}}`, `{"a":"x"}`, `{"a":"x"}`},
		{`[1]`, `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, `[2]`, `[2]`},
		{`{"a":null}`, `{"b":1}`, `{"a":null,"b":1}`},
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, r := range mergeRows() {
		target := parse1(t, r[0])
		got, err := json.Marshal(Merge(target, parse1(t, r[1])).Any())
		if err != nil || string(got) != r[2] {
			t.Errorf("%s with %s: got %s, want %s, %v", r[0], r[1], got, r[2], err)
		}
		if again, err := json.Marshal(target.Any()); err != nil || string(again) != r[0] {
			t.Errorf("%s became %s", r[0], again)
		}
	}
}

// It is what the pseudo code of RFC 7396 section 2 does, and the same patch again
// changes nothing.
func FuzzMerge(f *testing.F) {
	if len(mergeRows()) == 0 {
		f.Fatal("no seeds")
	}
	for _, r := range mergeRows() {
		f.Add(r[0], r[1])
	}
	limits := Limits{Depth: 32, Nodes: 10_000, Text: 1 << 20, Documents: 1}
	f.Fuzz(func(t *testing.T, target, patch string) {
		a, errA := JSON([]byte(target), limits)
		b, errB := JSON([]byte(patch), limits)
		if errA != nil || errB != nil || len(a) != 1 || len(b) != 1 {
			return
		}
		got := Merge(a[0], b[0])
		if want := byTheBook(a[0].Any(), b[0].Any()); !reflect.DeepEqual(got.Any(), want) {
			t.Fatalf("%s with %s: got %v, want %v", target, patch, got.Any(), want)
		}
		if again := Merge(got, b[0]); !reflect.DeepEqual(again.Any(), got.Any()) {
			t.Fatalf("%s twice: %v", patch, again.Any())
		}
	})
}

func byTheBook(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if m, ok := target.(map[string]any); ok {
		for k, v := range m {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = byTheBook(out[k], v)
		}
	}
	return out
}
