package api

import (
	"encoding/json"
	"testing"
)

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
