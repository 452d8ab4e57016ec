package document

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// maxErrors is how many errors of one document are told at once.
const maxErrors = 20

// Decode fills the struct that target points to from n by its json tags. It
// returns everything that is wrong: unknown fields with the nearest known name,
// values of the wrong type.
func Decode(n *Node, target any) []hardware.FieldError {
	var d decoder
	d.value(n, reflect.ValueOf(target).Elem(), "")
	return d.errs
}

type decoder struct{ errs []hardware.FieldError }

func (d *decoder) addf(n *Node, path, format string, args ...any) {
	if len(d.errs) >= maxErrors {
		return
	}
	if path == "" {
		path = "document"
	}
	detail := fmt.Sprintf(format, args...)
	if n.Line > 0 {
		detail += fmt.Sprintf(" (line %d)", n.Line)
	}
	d.errs = append(d.errs, hardware.FieldError{Field: path, Detail: detail})
}

func (d *decoder) wanted(n *Node, path, what string) {
	is := n.Type.String()
	if n.Type != Map && n.Type != List && n.Type != Null {
		is = fmt.Sprintf("%.40q", n.Value)
	}
	d.addf(n, path, "is %s, wanted %s", is, what)
}

func (d *decoder) value(n *Node, v reflect.Value, path string) {
	if n.Type == Null {
		v.SetZero()
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
		return
	}
	if d.custom(n, v, path) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		v.Set(reflect.ValueOf(n.Any()))
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

// custom decodes types that read their own text.
func (d *decoder) custom(n *Node, v reflect.Value, path string) bool {
	switch p := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		_, asJSON := p.(json.Unmarshaler)
		if n.Type == Map || n.Type == List || (n.Type != Text && !n.Plain && !asJSON) {
			d.wanted(n, path, "text")
			return true
		}
		if err := p.UnmarshalText([]byte(n.Value)); err != nil {
			d.addf(n, path, "%s", explain(p, n.Value, err))
		}
	case json.Unmarshaler:
		raw, err := json.Marshal(n.Any())
		if err == nil {
			err = p.UnmarshalJSON(raw)
		}
		if err != nil {
			d.addf(n, path, "%v", err)
		}
	default:
		return false
	}
	return true
}

// explain says it with the remedy where the standard library's error has none.
func explain(target any, text string, err error) string {
	switch target.(type) {
	case *netip.Prefix:
		return fmt.Sprintf("%.60q is not an address with a prefix length (write it as 10.0.0.5/24)", text)
	case *netip.Addr:
		return fmt.Sprintf("%.60q is not an IP address (write it as 10.0.0.1)", text)
	}
	return err.Error()
}

func (d *decoder) structure(n *Node, v reflect.Value, path string) {
	if n.Type != Map {
		d.wanted(n, path, "a map")
		return
	}
	fields := structFields(v.Type())
	for _, f := range n.Fields {
		i, ok := fields[f.Key]
		if !ok {
			at := *f.Value
			at.Line = f.Line
			d.addf(&at, join(path, f.Key), "is not known here%s", meant(f.Key, fields))
			continue
		}
		d.value(f.Value, v.FieldByIndex(i), join(path, f.Key))
	}
}

// structFields maps JSON names to fields; those of embedded structs are their
// parent's.
func structFields(t reflect.Type) map[string][]int {
	out := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			out[name] = f.Index
		}
	}
	return out
}

func meant(key string, fields map[string][]int) string {
	names := make([]string, 0, len(fields))
	for k := range fields {
		names = append(names, k)
	}
	slices.Sort(names)
	if near := hardware.Nearest(key, names); len(near) > 0 {
		return fmt.Sprintf(" (did you mean %s?)", near[0])
	}
	return fmt.Sprintf(" (one of %s)", strings.Join(names, ", "))
}

func (d *decoder) mapping(n *Node, v reflect.Value, path string) {
	if n.Type != Map {
		d.wanted(n, path, "a map")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Fields)))
	for _, f := range n.Fields {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(f.Value, e, join(path, f.Key))
		v.SetMapIndex(reflect.ValueOf(f.Key).Convert(v.Type().Key()), e)
	}
}

func (d *decoder) list(n *Node, v reflect.Value, path string) {
	if n.Type != List {
		d.wanted(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, e := range n.Items {
		d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) scalar(n *Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		if n.Type == Text || (n.Plain && n.Type != Null) {
			v.SetString(n.Value)
			return
		}
		d.wanted(n, path, "text")
	case reflect.Bool:
		if n.Type == Bool {
			v.SetBool(strings.EqualFold(n.Value, "true"))
			return
		}
		d.wanted(n, path, "true or false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
		if n.Type != Number || err != nil {
			d.wanted(n, path, fmt.Sprintf("a whole number of %d bits", v.Type().Bits()))
			return
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i, err := strconv.ParseUint(n.Value, 10, v.Type().Bits())
		if n.Type != Number || err != nil {
			d.wanted(n, path, fmt.Sprintf("a whole number of %d bits, not negative", v.Type().Bits()))
			return
		}
		v.SetUint(i)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, v.Type().Bits())
		if n.Type != Number || err != nil {
			d.wanted(n, path, "a number")
			return
		}
		v.SetFloat(f)
	default:
		d.addf(n, path, "cannot be set")
	}
}

func join(path, key string) string {
	key = hardware.PlainText(key, 60)
	if path == "" {
		return key
	}
	return path + "." + key
}
