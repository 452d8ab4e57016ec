package hardware

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// declaredReasons are the constants of reason.go by name, as written there.
func declaredReasons(t *testing.T) map[string]Reason {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Reason{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if typ, ok := v.Type.(*ast.Ident); !ok || typ.Name != "Reason" || len(v.Names) != 1 || len(v.Values) != 1 {
				t.Fatalf("reason.go: %s is not declared as `ReasonX Reason = \"x\"`", v.Names[0])
			}
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Names[0].Name] = Reason(text)
		}
	}
	return out
}

// The set is closed: each constant has a sentence of its own, and no sentence is
// of something else. (That each has a heading in the troubleshooting guide is
// tested in package ipxe.)
func TestEveryReasonHasASentence(t *testing.T) {
	t.Parallel()
	declared := declaredReasons(t)
	if len(declared) < 50 {
		t.Fatalf("found %d constants only", len(declared))
	}
	byValue, sentences := map[Reason]string{}, map[string]Reason{}
	for name, r := range declared {
		if other, ok := byValue[r]; ok {
			t.Errorf("%s and %s are both %q", name, other, r)
		}
		byValue[r] = name
		if !r.Known() {
			t.Errorf("%s (%q) has no sentence", name, r)
			continue
		}
		s := r.Sentence()
		if s == "" || s != strings.TrimSpace(s) || strings.HasSuffix(s, ".") {
			t.Errorf("%s: the sentence is %q", name, s)
		}
		if other, ok := sentences[s]; ok {
			t.Errorf("%q and %q have one sentence", r, other)
		}
		sentences[s] = r
		if err := ValidName(string(r)); err != nil { // metric label, heading, JSON value
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range Reasons() {
		if byValue[r] == "" {
			t.Errorf("%q has a sentence and no constant", r)
		}
	}
	if r := Reason("no-such-reason"); r.Known() || r.Sentence() != "no-such-reason" {
		t.Errorf("an unknown reason is %q", r.Sentence())
	}
}
