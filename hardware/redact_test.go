package hardware

import (
	"reflect"
	"testing"
	"time"
)

type vault struct {
	Plain  string
	Secret string            `secret:"true"`
	List   []string          `secret:"true"`
	Map    map[string]string `secret:"true"`
	Any    any               `secret:"true"`
	Inner  *vault
	Others []vault
	When   time.Time
}

func TestRedact(t *testing.T) {
	t.Parallel()
	now := time.Now()
	v := &vault{
		Plain: "p", Secret: "s", List: []string{"a", ""}, Map: map[string]string{"k": "v"}, Any: map[string]any{"x": []any{"y", 7}},
		Inner: &vault{Secret: "deep"}, Others: []vault{{Secret: "o"}, {}}, When: now,
	}
	want := &vault{
		Plain: "p", Secret: Redacted, List: []string{Redacted, ""}, Map: map[string]string{"k": Redacted}, Any: map[string]any{"x": []any{Redacted, 7}},
		Inner: &vault{Secret: Redacted}, Others: []vault{{Secret: Redacted}, {}}, When: now,
	}
	got := Redact(v)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if v.Secret != "s" || v.Inner.Secret != "deep" || v.List[0] != "a" || v.Others[0].Secret != "o" {
		t.Errorf("the original was changed: %+v", v)
	}
	if back := Unredact(got, v); !reflect.DeepEqual(back, v) {
		t.Errorf("sent back: got %+v, want %+v", back, v)
	}
	if HasRedacted(v) || !HasRedacted(got) {
		t.Error("HasRedacted is wrong")
	}
	if lost := Unredact(got, nil); !HasRedacted(lost) {
		t.Error("a secret that nobody has was made up")
	}
}

// TestHardwareRedacted: what is written by hand is what the tags say, for every field
// that there is.
func TestHardwareRedacted(t *testing.T) {
	t.Parallel()
	h := new(Hardware)
	fill(reflect.ValueOf(h).Elem())
	kept := Unredact(h, h) // a deep copy
	got := h.Redacted()
	if want := Redact(h); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwanted %+v", got, want)
	}
	if !reflect.DeepEqual(h, kept) || h.Spec.Power.Secret != "x" {
		t.Errorf("the original was changed: %+v", h)
	}
	if empty := new(Hardware); !reflect.DeepEqual(empty.Redacted(), empty) {
		t.Error("an empty record was changed")
	}
}

// fill puts something into every exported field.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k)
		fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

func TestRedactHardware(t *testing.T) {
	t.Parallel()
	h := &Hardware{Spec: Spec{UserData: "#cloud-config\npassword: x\n", Notes: "rack 7"}}
	got := Redact(h)
	if got.Spec.UserData != Redacted || got.Spec.Notes != "rack 7" {
		t.Errorf("got %+v", got.Spec)
	}
	got.Spec.UserData = "new"
	if Unredact(got, h).Spec.UserData != "new" {
		t.Error("a new secret was not kept")
	}
}
