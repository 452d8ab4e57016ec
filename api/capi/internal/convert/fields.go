package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// fields reads an object of another provider and forgets what it has read, so that what
// is left in the end is what nobody looked at.
type fields struct {
	c    *conversion
	d    *document
	path string
	m    map[string]any
}

// at is the object under the key. It is never nil; where there is none, it is empty.
func (f *fields) at(name string) *fields {
	v, ok := f.take(name)
	m, is := v.(map[string]any)
	if ok && v != nil && !is {
		f.c.note(f.d, true, f.where(name), "is not an object, and is left out")
	}
	return &fields{f.c, f.d, f.where(name), m}
}

func (f *fields) where(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

func (f *fields) has(name string) bool { v, ok := f.m[name]; return ok && !empty(v) }

func (f *fields) take(name string) (any, bool) {
	v, ok := f.m[name]
	delete(f.m, name)
	return v, ok
}

// string is a text; a number is one too, for people forget the quotes of 2204.
func (f *fields) string(name string) string {
	v, ok := f.take(name)
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	if ok && v != nil {
		f.c.note(f.d, true, f.where(name), "is not a text, and is left out")
	}
	return ""
}

// int is a whole number; ok says that there is one.
func (f *fields) int(name string) (n int32, ok bool) {
	v, has := f.take(name)
	if !has || v == nil {
		return 0, false
	}
	i, err := strconv.ParseInt(fmt.Sprint(v), 10, 32)
	if err != nil {
		f.c.note(f.d, true, f.where(name), "is not a whole number, and is left out")
		return 0, false
	}
	return int32(i), true
}

func (f *fields) bool(name string) bool {
	v, ok := f.take(name)
	b, is := v.(bool)
	if ok && v != nil && !is {
		f.c.note(f.d, true, f.where(name), "is neither true nor false, and is left out")
	}
	return b
}

// list are the objects of a list.
func (f *fields) list(name string) []*fields {
	v, ok := f.take(name)
	l, is := v.([]any)
	if ok && v != nil && !is {
		f.c.note(f.d, true, f.where(name), "is not a list, and is left out")
	}
	var out []*fields
	for i, x := range l {
		at := fmt.Sprintf("%s[%d]", f.where(name), i)
		m, is := x.(map[string]any)
		if !is {
			f.c.note(f.d, true, at, "is not an object, and is left out")
			continue
		}
		out = append(out, &fields{f.c, f.d, at, m})
	}
	return out
}

// lost notes what has no equivalent, where it is there.
func (f *fields) lost(name, instead string) {
	if f.has(name) {
		f.c.note(f.d, true, f.where(name), "%s", instead)
	}
	delete(f.m, name)
}

// written notes what a controller wrote, where it is there.
func (f *fields) written(name, instead string) {
	if f.has(name) {
		f.c.note(f.d, false, f.where(name), "%s", instead)
	}
	delete(f.m, name)
}

// rest notes everything that is still there.
func (f *fields) rest() {
	for _, name := range slices.Sorted(maps.Keys(f.m)) {
		f.lost(name, "is not known, and is left out")
	}
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return false
}

// decode reads the object under the key into out, strictly; ok says that there is one.
func decode[T any](f *fields, name string, out *T) bool {
	v, ok := f.take(name)
	if !ok || empty(v) {
		return false
	}
	data, err := json.Marshal(v)
	if err == nil {
		err = strict(data, out, func(what string) { f.c.note(f.d, true, f.where(name), "%s", what) })
	}
	if err != nil {
		f.c.note(f.d, true, f.where(name), "cannot be read, and is left out: %v", err)
		return false
	}
	return true
}
