package hardware

import "reflect"

// Redacted is what stands in place of a secret in everything we show. Sent back
// unchanged, it means "keep the value you have".
const Redacted = "(redacted)"

// Redact returns a deep copy of v in which every string that is not empty, in a
// struct field tagged `secret:"true"`, is replaced by Redacted. It follows
// pointers, slices, maps and interfaces.
func Redact[T any](v T) T {
	out := secrets{replace: func(reflect.Value, string) string { return Redacted }}.clone(reflect.ValueOf(&v).Elem(), reflect.Value{}, false)
	return out.Interface().(T)
}

// Redacted is Redact of a record, made by hand because lists have many: it shares with
// h what is no secret, so do not change it.
func (h *Hardware) Redacted() *Hardware {
	c := *h
	if c.Spec.UserData != "" {
		c.Spec.UserData = Redacted
	}
	if p := c.Spec.Power; p != nil && p.Secret != "" {
		q := *p
		q.Secret = Redacted
		c.Spec.Power = &q
	}
	return &c
}

// Unredact returns a deep copy of v in which every secret that reads Redacted has
// the value that old has in the same place, so that what was shown can be sent
// back without a loss. A secret that old does not have stays Redacted; Validate
// would not see it, so ask HasRedacted.
func Unredact[T any](v, old T) T {
	s := secrets{replace: func(old reflect.Value, now string) string {
		if now == Redacted && old.IsValid() && old.Kind() == reflect.String {
			return old.String()
		}
		return now
	}}
	return s.clone(reflect.ValueOf(&v).Elem(), reflect.ValueOf(&old).Elem(), false).Interface().(T)
}

// HasRedacted reports whether a secret in v is Redacted instead of a value.
func HasRedacted[T any](v T) bool {
	found := false
	s := secrets{replace: func(_ reflect.Value, now string) string {
		found = found || now == Redacted
		return now
	}}
	s.clone(reflect.ValueOf(&v).Elem(), reflect.Value{}, false)
	return found
}

// secrets copies values and passes each secret string that is not empty, with
// the value in the same place of another tree, through replace.
type secrets struct {
	replace func(old reflect.Value, now string) string
}

func (s secrets) clone(v, old reflect.Value, secret bool) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.Set(v)
		if secret && v.Len() > 0 {
			out.SetString(s.replace(old, v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		s.indirect(out, v, old, secret)
	case reflect.Struct:
		// what is unexported (time.Time, netip.Addr) is copied as it is
		out.Set(v)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				out.Field(i).Set(s.clone(v.Field(i), same(v, old, func() reflect.Value { return old.Field(i) }), secret || f.Tag.Get("secret") == "true"))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		s.elements(out, v, old, secret)
	case reflect.Array:
		s.elements(out, v, old, secret)
	case reflect.Map:
		if v.IsNil() {
			break
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), s.clone(it.Value(), same(v, old, func() reflect.Value { return old.MapIndex(it.Key()) }), secret))
		}
	default:
		out.Set(v)
	}
	return out
}

func (s secrets) indirect(out, v, old reflect.Value, secret bool) {
	if v.IsNil() {
		return
	}
	inner := s.clone(v.Elem(), same(v, old, func() reflect.Value { return old.Elem() }), secret)
	if v.Kind() == reflect.Interface {
		out.Set(inner)
		return
	}
	p := reflect.New(inner.Type())
	p.Elem().Set(inner)
	out.Set(p)
}

func (s secrets) elements(out, v, old reflect.Value, secret bool) {
	for i := range v.Len() {
		o := same(v, old, func() reflect.Value {
			if i < old.Len() {
				return old.Index(i)
			}
			return reflect.Value{}
		})
		out.Index(i).Set(s.clone(v.Index(i), o, secret))
	}
}

// same is the part of old that corresponds to a part of v, if old has v's type.
func same(v, old reflect.Value, part func() reflect.Value) reflect.Value {
	if !old.IsValid() || old.Type() != v.Type() {
		return reflect.Value{}
	}
	if k := old.Kind(); (k == reflect.Pointer || k == reflect.Interface || k == reflect.Map) && old.IsNil() {
		return reflect.Value{}
	}
	return part()
}
