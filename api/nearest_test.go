package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"hardware", "hardware-2", "subnet", "template"}
	for _, tc := range []struct {
		word string
		want []string
	}{
		{"hardwear", []string{"hardware"}},
		{"SUBNET", []string{"subnet"}},
		{"hard", []string{"hardware", "hardware-2"}},
		{"zzz", nil},
		{strings.Repeat("x", 1000), nil},
	} {
		if got := Nearest(tc.word, names); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%.20s: got %v, want %v", tc.word, got, tc.want)
		}
	}
}

func TestMarshal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		v    any
		want string
	}{
		{struct{}{}, `{"apiVersion":"rackstrap/v1","kind":"Image"}`},
		{json.RawMessage(`{"a":1}`), `{"apiVersion":"rackstrap/v1","kind":"Image","a":1}`},
	} {
		if got, err := Marshal(KindImage, tc.v); err != nil || string(got) != tc.want {
			t.Errorf("got %s, %v, want %s", got, err, tc.want)
		}
	}
}
