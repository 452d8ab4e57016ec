package hardware

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

// rows are selectors, how they print, and what they say of some labels.
func selectorRows() []struct {
	text, printed string
	yes, no       []map[string]string
} {
	type l = map[string]string
	return []struct {
		text, printed string
		yes, no       []map[string]string
	}{
		{"", "", []l{nil, {"a": "b"}}, nil},
		{"  ", "", []l{nil}, nil},
		{"a=b", "a=b", []l{{"a": "b"}, {"a": "b", "c": "d"}}, []l{nil, {"a": "c"}, {"b": "a"}}},
		{" a == b ", "a=b", []l{{"a": "b"}}, []l{nil, {"a": ""}}},
		{"a!=b", "a!=b", []l{nil, {"a": "c"}, {"a": ""}}, []l{{"a": "b"}}},
		{"a=", "a=", []l{{"a": ""}}, []l{nil, {"a": "b"}}},
		{"a", "a", []l{{"a": ""}, {"a": "x"}}, []l{nil, {"b": "a"}}},
		{"!a", "!a", []l{nil, {"b": "a"}}, []l{{"a": ""}}},
		{"a in (y, x,y)", "a in (x,y)", []l{{"a": "x"}, {"a": "y"}}, []l{nil, {"a": "z"}}},
		{"a notin(x)", "a notin (x)", []l{nil, {"a": "z"}}, []l{{"a": "x"}}},
		{"a in ()", "a in ()", []l{{"a": ""}}, []l{nil, {"a": "x"}}},
		{"rack=a1,tier!=test,gpu", "rack=a1,tier!=test,gpu", []l{{"rack": "a1", "gpu": "2"}}, []l{{"rack": "a1"}, {"rack": "a1", "gpu": "", "tier": "test"}}},
		{"in in (in),notin", "in in (in),notin", []l{{"in": "in", "notin": ""}}, []l{{"in": "in"}}},
		{"example.com/rack_1=a-1", "example.com/rack_1=a-1", []l{{"example.com/rack_1": "a-1"}}, nil},
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	for _, r := range selectorRows() {
		s, err := ParseSelector(r.text)
		if err != nil || s.String() != r.printed || s.Empty() != (r.printed == "") {
			t.Errorf("%q: got %q, %v", r.text, s, err)
		}
		for _, l := range r.yes {
			if !s.Matches(l) {
				t.Errorf("%q does not match %v", r.text, l)
			}
		}
		for _, l := range r.no {
			if s.Matches(l) {
				t.Errorf("%q matches %v", r.text, l)
			}
		}
	}
}

func TestSelectorErrors(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		text, want string
	}{
		{"a=b,", `at character 5: a label is missing (write key=value)`},
		{",a", `at character 1: "," is no label`},
		{"a b", `at character 3: "b" is not known after "a" (use =, !=, in or notin)`},
		{"a=b c=d", `at character 5: "c" is too much (put a comma between two requirements)`},
		{"a=b=c", `at character 4: "=" is too much`},
		{"a>1", `at character 2: ">" is not known after "a"`},
		{"a=ü", `at character 3: "ü" is no value`},
		{"a in x", `at character 6: in takes a list in brackets: key in (a,b)`},
		{"a notin (x", `at character 11: the list of notin has no end`},
		{"a in (x y)", `the list of in has no end`},
		{"!", `at character 2: a label is missing`},
		{"!!a", `at character 2: "!" is no label`},
		{strings.Repeat("a", 129), `at character 1: the key has 129 bytes, the limit is 128`},
		{"a=" + strings.Repeat("a", 129), `at character 3: the value has 129 bytes`},
		{strings.Repeat("a,", 3000), `it has 6000 bytes, the limit is 4096`},
	} {
		_, err := ParseSelector(r.text)
		var se *SelectorError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%.40q: got %v, want …%s…", r.text, err, r.want)
		}
	}
}

// What is printed reads back as the same selector, and a selector and its negation
// divide all records between them.
func FuzzSelector(f *testing.F) {
	if len(selectorRows()) == 0 {
		f.Fatal("no seeds")
	}
	for _, r := range selectorRows() {
		f.Add(r.text, "a", "b")
	}
	f.Fuzz(func(t *testing.T, text, key, value string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		printed := s.String()
		again, err := ParseSelector(printed)
		if err != nil || again.String() != printed || again.Empty() != s.Empty() {
			t.Fatalf("%q prints %q, which reads as %q, %v", text, printed, again, err)
		}
		labels := map[string]string{key: value}
		all := true
		for i, one := range s.terms {
			alone := Selector{terms: s.terms[i : i+1]}
			not := Selector{terms: []term{{one.key, opposite()[one.op], one.values}}}
			for _, l := range []map[string]string{nil, labels} {
				if alone.Matches(l) == not.Matches(l) {
					t.Fatalf("%q and %q are the same of %v", alone, not, l)
				}
			}
			all = all && alone.Matches(labels)
		}
		if s.Matches(labels) != all || again.Matches(labels) != all || s.Matches(maps.Clone(labels)) != all {
			t.Fatalf("%q: %v is not what its parts say", text, all)
		}
		if all && !validForLabel(key, value) && len(s.terms) == 1 && s.terms[0].op == opIs {
			t.Fatalf("%q matches %q=%q, which is no label", text, key, value)
		}
	})
}

func validForLabel(k, v string) bool { return validLabel(k, v) == nil }

func opposite() map[operator]operator {
	return map[operator]operator{opHas: opHasNo, opHasNo: opHas, opIs: opIsNot, opIsNot: opIs, opIn: opNotIn, opNotIn: opIn}
}
