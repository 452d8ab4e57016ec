package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Types says what reflection does not see.
type Types struct {
	// Text are the schemas of types that are written as strings of a form of theirs.
	Text map[reflect.Type]Schema
	// Enums are the closed sets of named strings.
	Enums map[reflect.Type][]string
	// Head are properties in front of those of a record; see IsRecord.
	Head map[string]*Schema
	// IsRecord reports whether a type has a Head.
	IsRecord func(reflect.Type) bool
	// Fields describes types and fields, by package.Type and package.Type.Field.
	Fields map[string]string
	// Prefer is the package whose types keep their plain name where two have one.
	Prefer string
}

// schemas makes the components.
type schemas struct {
	types Types
	names map[reflect.Type]string
	made  map[string]*Schema
}

func newSchemas(t Types) *schemas {
	return &schemas{types: t, names: map[reflect.Type]string{}, made: map[string]*Schema{}}
}

// Object is the schema of a struct by itself: nothing in it refers to another.
func Object(t reflect.Type, types Types) *Schema { return newSchemas(types).object(t) }

// collect gives every struct and closed set below t a name; two types with one name
// are told apart by their packages.
func (s *schemas) collect(all []reflect.Type) {
	seen := map[reflect.Type]bool{}
	byName := map[string][]reflect.Type{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		if s.isComponent(t) {
			byName[plainName(t)] = append(byName[plainName(t)], t)
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if s.leaf(t) != nil {
				return
			}
			for _, f := range fields(t) {
				walk(f.Type)
			}
		}
	}
	for _, t := range all {
		walk(t)
	}
	for name, list := range byName {
		for _, t := range list {
			s.names[t] = name
			if len(list) > 1 && path.Base(t.PkgPath()) != s.types.Prefer {
				s.names[t] = title(path.Base(t.PkgPath())) + name
			}
		}
	}
}

// isComponent: named structs and closed sets are referred to, all else is written
// where it is used.
func (s *schemas) isComponent(t reflect.Type) bool {
	if s.types.Enums[t] != nil {
		return true
	}
	return t.Kind() == reflect.Struct && t.Name() != "" && s.leaf(t) == nil
}

// plainName is the type's name; that of a List[Thing] is ThingList.
func plainName(t reflect.Type) string {
	name := t.Name()
	outer, inner, generic := strings.Cut(name, "[")
	if !generic {
		return title(name)
	}
	inner = strings.TrimSuffix(inner, "]")
	return title(inner[strings.LastIndexByte(inner, '.')+1:]) + outer
}

func title(s string) string {
	r := []rune(s)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// of is the schema of a type where it is used.
func (s *schemas) of(t reflect.Type) *Schema {
	if s.isComponent(t) {
		name := s.names[t]
		if s.made[name] == nil {
			s.made[name] = &Schema{} // for types that contain themselves
			*s.made[name] = *s.full(t)
			s.made[name].Description = s.types.Fields[docName(t)]
		}
		return &Schema{Ref: "#/components/schemas/" + name}
	}
	return s.full(t)
}

// leaf is the schema of a type that is not looked into; nil where it is.
func (s *schemas) leaf(t reflect.Type) *Schema {
	if known, ok := s.types.Text[t]; ok {
		return &known
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return &Schema{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && s.types.Enums[t] == nil:
		return &Schema{Type: "string"}
	}
	return nil
}

func (s *schemas) full(t reflect.Type) *Schema {
	if l := s.leaf(t); l != nil {
		return l
	}
	if set := s.types.Enums[t]; set != nil {
		return &Schema{Type: "string", Enum: set}
	}
	zero := 0
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &Schema{Type: "integer", Format: "int64"}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return &Schema{Type: "integer", Format: "int32"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer", Format: "int64", Minimum: &zero}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number", Format: "double"}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Map:
		return &Schema{Type: "object", Values: s.of(t.Elem())}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &Schema{Type: "string", ContentEncoding: "base64"}
		}
		return &Schema{Type: "array", Items: s.of(t.Elem())}
	case reflect.Struct:
		return s.object(t)
	}
	panic(fmt.Sprintf("openapi: %v has no JSON", t))
}

func (s *schemas) object(t reflect.Type) *Schema {
	out := &Schema{Type: "object", Properties: map[string]*Schema{}}
	if s.types.IsRecord != nil && s.types.IsRecord(t) {
		for name, h := range s.types.Head {
			out.Properties[name] = h
		}
	}
	for _, f := range fields(t) {
		p := *s.of(f.Type)
		text := s.types.Fields[f.doc]
		if f.secret {
			text = strings.TrimSpace(text + " A secret: it reads (redacted), and sent back so it stays as it is.")
		}
		p.Description = text
		out.Properties[f.name] = &p
		if !f.optional {
			out.Required = append(out.Required, f.name)
		}
	}
	slices.Sort(out.Required)
	return out
}

// docName is a type as Fields has it: package.Type.
func docName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return path.Base(t.PkgPath()) + "." + name
}

// field is one key of an object.
type field struct {
	reflect.Type
	name, doc        string
	optional, secret bool
}

// fields are the keys that encoding/json writes for a struct; those of embedded
// structs are its own, and an outer key hides an inner one.
func fields(t reflect.Type) []field {
	var own, inner []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, opts, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			continue
		case f.Anonymous && name == "":
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			inner = append(inner, fields(e)...)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		own = append(own, field{
			Type: f.Type, name: name, doc: docName(t) + "." + f.Name,
			optional: strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero"),
			secret:   f.Tag.Get("secret") == "true",
		})
	}
	for _, f := range inner {
		if !slices.ContainsFunc(own, func(o field) bool { return o.name == f.name }) {
			own = append(own, f)
		}
	}
	return own
}
