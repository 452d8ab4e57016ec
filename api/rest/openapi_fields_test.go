package rest

import (
	"encoding"
	flags "flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var update = flags.Bool("update", false, "write openapi_fields.txt (the test still fails)")

// comments are those of the struct types and named strings of a package, as the document
// has them: by Type and Type.Field.
func comments(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	out := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				typ := s.(*ast.TypeSpec)
				about := typ.Doc
				if about == nil {
					about = g.Doc
				}
				describe(out, typ, about.Text())
			}
		}
	}
	return out
}

// describe adds what is said of a type and of its fields.
func describe(out map[string]string, typ *ast.TypeSpec, about string) {
	names := map[string]string{} // of the fields, in Go and in JSON
	body, ok := typ.Type.(*ast.StructType)
	if ok {
		for _, f := range body.Fields.List {
			for _, n := range f.Names {
				names[n.Name] = jsonName(f, n.Name)
			}
		}
	}
	if about != "" {
		out[typ.Name.Name] = plain(about, typ.Name.Name, names)
	}
	if !ok {
		return
	}
	above := "" // the last comment, which may be on the fields below it too
	for _, f := range body.Fields.List {
		doc := f.Doc.Text()
		if doc != "" {
			above = doc
		}
		for i, n := range f.Names {
			key := typ.Name.Name + "." + n.Name
			switch {
			case doc != "" && (i == 0 || !namesIn(doc, n.Name)):
				out[key] = plain(doc, n.Name, names)
			case f.Comment.Text() != "":
				out[key] = plain(f.Comment.Text(), n.Name, names)
			case namesIn(above, n.Name):
				out[key] = plain(above, "", names)
			default:
				if s := sentenceOn(about, n.Name); s != "" {
					out[key] = plain(s, n.Name, names)
				}
			}
		}
	}
}

// namesIn reports whether a text has a Go name in it.
func namesIn(text, name string) bool {
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(text)
}

// sentenceOn is the part of a type's comment that begins with a field's name.
func sentenceOn(about, name string) string {
	for _, s := range regexp.MustCompile(`[.;] `).Split(strings.Join(strings.Fields(about), " "), -1) {
		if strings.HasPrefix(s, name+" ") {
			return s
		}
	}
	return ""
}

func jsonName(f *ast.Field, name string) string {
	if f.Tag == nil {
		return name
	}
	tag, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
	if tag == "" || tag == "-" {
		return name
	}
	return tag
}

// plain is a Go comment in words of the API: the name that it begins with is left out,
// where that reads well, and the names of fields are those in JSON.
func plain(text, own string, names map[string]string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = regexp.MustCompile(`\[([A-Za-z][\w.]*)\]`).ReplaceAllString(text, "$1")
	if rest, ok := strings.CutPrefix(text, own); ok && own != "" {
		verb := regexp.MustCompile(`^ ([a-z]+s) `).FindStringSubmatch(rest)
		switch {
		case strings.HasPrefix(rest, ": "):
			text = rest[2:]
		case strings.HasPrefix(rest, " is "), strings.HasPrefix(rest, " are "):
			_, text, _ = strings.Cut(rest[1:], " ")
		case verb != nil && !slices.Contains([]string{"as", "this", "its", "was"}, verb[1]):
			text = rest[1:]
		}
	}
	named := false // it begins with the name of a field, which keeps its form
	for name, json := range names {
		at := regexp.MustCompile(`\b` + name + `\b`)
		if i := at.FindStringIndex(text); i != nil && i[0] == 0 {
			named = true
		}
		text = at.ReplaceAllString(text, json)
	}
	text = regexp.MustCompile(`\bnil\b`).ReplaceAllString(text, "missing")
	if r := []rune(text); !named && len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
		text = string(r)
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// What the document says of its types and fields is what their Go comments say, and of
// what people write there is none without a word: an editor shows it to them.
func TestFields(t *testing.T) {
	t.Parallel()
	const ours = "github.com/rackstrap/rackstrap/"
	said := map[string]map[string]string{}
	lines, written := map[string]bool{}, map[reflect.Type]bool{}
	// about is what is said of the type that a field has, or that its entries have
	about := func(typ reflect.Type) string {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, typ.Kind()) {
			typ = typ.Elem()
		}
		dir, ok := strings.CutPrefix(typ.PkgPath(), ours)
		if !ok || typ.Kind() != reflect.Struct && types().Enums[typ] == nil {
			return ""
		}
		if said[dir] == nil {
			said[dir] = comments(t, filepath.Join("../..", dir))
		}
		name, _, _ := strings.Cut(typ.Name(), "[")
		return said[dir][name]
	}
	visit := func(typ reflect.Type) {
		dir, ok := strings.CutPrefix(typ.PkgPath(), ours)
		if !ok || typ.Kind() != reflect.Struct && types().Enums[typ] == nil || typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return
		}
		if said[dir] == nil {
			said[dir] = comments(t, filepath.Join("../..", dir))
		}
		name, _, _ := strings.Cut(typ.Name(), "[")
		key := path.Base(dir) + "." + name
		if text := said[dir][name]; text != "" {
			lines[key+"\t"+text] = true
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			if text := said[dir][name+"."+f.Name]; text != "" {
				lines[key+"."+f.Name+"\t"+text] = true
			} else if written[typ] && f.IsExported() && f.Tag.Get("json") != "-" && about(f.Type) == "" {
				t.Errorf("nothing is said of %s.%s (write it above the field)", key, f.Name)
			}
		}
	}
	for _, r := range Routes() { // what people write: the spec and the labels of records
		if r.In == nil || !isRecord(reflect.TypeOf(r.In)) {
			continue
		}
		for _, part := range []string{"Meta", "Spec"} {
			if f, ok := reflect.TypeOf(r.In).FieldByName(part); ok {
				walkTypes(f.Type, written, func(reflect.Type) {})
			}
		}
	}
	seen := map[reflect.Type]bool{}
	for _, r := range Routes() {
		for _, v := range []any{r.In, r.Out} {
			if v != nil {
				walkTypes(reflect.TypeOf(v), seen, visit)
			}
		}
	}
	var all []string
	for line := range lines {
		all = append(all, line)
	}
	slices.Sort(all)
	want := strings.Join(all, "\n") + "\n"
	if want != fieldTexts {
		if *update {
			if err := os.WriteFile("openapi_fields.txt", []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Error("openapi_fields.txt is not what the comments say (write it: go test ./api/rest -run TestFields -update)")
	}
}

// A comment in words of the API.
func TestPlain(t *testing.T) {
	t.Parallel()
	names := map[string]string{"HoldReason": "holdReason", "Hold": "hold", "Until": "until"}
	for _, tt := range []struct{ text, own, want string }{
		{"Until is how long\nit is kept; nil is for ever.", "Until", "How long it is kept; missing is for ever."},
		{"Hold: the machine waits for a human; HoldReason says why.", "Hold", "The machine waits for a human; holdReason says why."},
		{"Hold: the machine waits for a human; HoldReason says why.", "", "hold: the machine waits for a human; holdReason says why."},
		{"HoldReason says why", "HoldReason", "Says why."},
		{"Until, of [Reserve], ends it.", "Until", "until, of Reserve, ends it."},
		{"bytes", "Until", "Bytes."},
	} {
		if got := plain(tt.text, tt.own, names); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
