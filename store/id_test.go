package store

import (
	"strings"
	"testing"
	"time"
)

func TestIDsSort(t *testing.T) {
	t.Parallel()
	var g ids
	now := time.Now()
	last := ""
	for i := range 5000 {
		id := g.next(now.Add(time.Duration(i/1000) * time.Millisecond))
		if id <= last || len(id) != 26 {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	if _, ok := increment(last[:ulidTime] + strings.Repeat("Z", 16)); ok {
		t.Error("an overflow is not told")
	}
	if up, _ := increment(last[:ulidTime] + "000000000000009Z"); up[ulidTime:] != "00000000000000A0" {
		t.Errorf("carry: %s", up)
	}
}
