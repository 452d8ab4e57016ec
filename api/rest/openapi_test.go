package rest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
)

// constants are the values of typed string constants in a package's source, by type.
func constants(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	out := map[string][]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				typ, ok := v.Type.(*ast.Ident)
				if !ok || len(v.Values) != 1 {
					continue
				}
				if l, ok := v.Values[0].(*ast.BasicLit); ok && l.Kind == token.STRING {
					text, err := strconv.Unquote(l.Value)
					if err != nil {
						t.Fatal(err)
					}
					out[typ.Name] = append(out[typ.Name], text)
				}
			}
		}
	}
	return out
}

// A closed set in the document is the set of its constants, and every named string
// with constants that is in a body is a closed set.
func TestEnums(t *testing.T) {
	t.Parallel()
	open := []string{"Disk", "Partition"} // constants, and other values besides
	known := types()
	for _, pkg := range []string{"hardware", "workflow", "api"} {
		source := constants(t, filepath.Join("../..", pkg))
		for typ, values := range known.Enums {
			if typ.PkgPath() != "github.com/rackstrap/rackstrap/"+pkg {
				continue
			}
			a, b := slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(source[typ.Name()]))
			if !slices.Equal(a, b) {
				t.Errorf("%v: the document has %q, the source %q", typ, a, b)
			}
		}
		for _, r := range Routes() {
			for _, v := range []any{r.In, r.Out} {
				if v == nil {
					continue
				}
				walkTypes(reflect.TypeOf(v), map[reflect.Type]bool{}, func(typ reflect.Type) {
					if typ.Kind() == reflect.String && typ.PkgPath() == "github.com/rackstrap/rackstrap/"+pkg && len(source[typ.Name()]) > 0 &&
						known.Enums[typ] == nil && !slices.Contains(open, typ.Name()) {
						t.Errorf("%v has constants and is no closed set in the document (add it to enums)", typ)
					}
				})
			}
		}
	}
}

func walkTypes(t reflect.Type, seen map[reflect.Type]bool, visit func(reflect.Type)) {
	if seen[t] {
		return
	}
	seen[t] = true
	visit(t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		walkTypes(t.Elem(), seen, visit)
	case reflect.Struct:
		for i := range t.NumField() {
			walkTypes(t.Field(i).Type, seen, visit)
		}
	}
}

// Every code has its meaning, and each is a constant.
func TestCodes(t *testing.T) {
	t.Parallel()
	source := slices.Sorted(slices.Values(constants(t, "../../api")["Code"]))
	var have []string
	for _, c := range api.Codes() {
		have = append(have, string(c))
		if c.Means() == "" {
			t.Errorf("%s means nothing", c)
		}
	}
	if !slices.Equal(source, have) {
		t.Errorf("the source has %q, Codes %q", source, have)
	}
}

// Every parameter that a route reads is described, and has a type.
func TestParameters(t *testing.T) {
	t.Parallel()
	known := parameters()
	for _, r := range Routes() {
		for _, q := range r.Query {
			if known[q].Description == "" {
				t.Errorf("%s %s: the parameter %q is not described (add it to parameters)", r.Method, r.Path, q)
			}
		}
		if tag := tagOf(r.Path); tag == "appliance" && !slices.Contains([]string{"/version", "/whoami", "/backup"}, r.Path) {
			t.Errorf("%s has no tag (add its first word to tags)", r.Path)
		}
	}
}

// The document is the same each time, and every reference in it leads somewhere.
func TestDocument(t *testing.T) {
	t.Parallel()
	one, err := json.Marshal(Document("1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := json.Marshal(Document("1"))
	if err != nil || string(one) != string(two) {
		t.Error("two documents differ")
	}
	d := Document("1")
	for _, ref := range regexp.MustCompile(`"#/components/(schemas|responses)/([^"]*)"`).FindAllStringSubmatch(string(one), -1) {
		_, schema := d.Components.Schemas[ref[2]]
		_, response := d.Components.Responses[ref[2]]
		if (ref[1] == "schemas") != schema || (ref[1] == "responses") != response {
			t.Errorf("%s leads nowhere", ref[0])
		}
	}
	ids := map[string]bool{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if ids[op.OperationID] {
				t.Errorf("%s %s: %s is there twice", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
		}
	}
	// a secret is marked where it is
	if s := d.Components.Schemas["Spec"]; s == nil || !strings.Contains(s.Properties["userData"].Description, "secret") {
		t.Error("userData is not marked as a secret")
	}
}
