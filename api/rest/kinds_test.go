package rest

import (
	"reflect"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// What is shown of a machine without being redacted can hold no secret.
func TestNoSecretsBesideTheSpec(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(at string, rt reflect.Type)
	walk = func(at string, rt reflect.Type) {
		if seen[rt] {
			return
		}
		seen[rt] = true
		switch rt.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(at, rt.Elem())
		case reflect.Interface:
			t.Errorf("%s may hold anything", at)
		case reflect.Struct:
			for f := range rt.Fields() {
				if f.Tag.Get("secret") != "" {
					t.Errorf("%s.%s is a secret: redact it", at, f.Name)
				}
				if f.IsExported() {
					walk(at+"."+f.Name, f.Type)
				}
			}
		}
	}
	walk("Meta", reflect.TypeFor[hardware.Meta]())
	walk("Status", reflect.TypeFor[hardware.Status]())
	walk("Facts", reflect.TypeFor[hardware.Facts]())
}
