package hardware

import (
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
