package machine

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/hardware"
)

// The machines of a group are counted by a label of their Hardware, as its records have it
// and not as another machine of the same name has; without the label rack by their spec.
func TestBesides(t *testing.T) {
	t.Parallel()
	record := func(uid, rack string, labels map[string]string) hardware.Hardware {
		return hardware.Hardware{Meta: hardware.Meta{Name: "of-" + uid, UID: uid, Labels: labels}, Spec: hardware.Spec{Rack: rack}}
	}
	all := []hardware.Hardware{
		record("1", "a", nil), record("2", "a", map[string]string{"rack": "b", "feed": "x"}), record("3", "a", nil), record("4", "", nil), record("other", "a", nil),
	}
	var claims []hardware.Claim
	for _, uid := range []string{"1", "2", "3", "4", "newer"} {
		claims = append(claims, hardware.Claim{Status: hardware.ClaimStatus{Hardware: "of-other", UID: uid}})
	}
	if got, want := besides(claims, all, "rack"), (map[string]int{"a": 2, "b": 1, "": 1}); !maps.Equal(got, want) {
		t.Errorf("by rack %v, want %v", got, want)
	}
	if got, want := besides(claims, all, "feed"), (map[string]int{"x": 1, "": 3}); !maps.Equal(got, want) {
		t.Errorf("by feed %v, want %v", got, want)
	}
}

// Claims that are spread take turns in one appliance; another's do not wait for them, and
// nobody waits longer than he may.
func TestSpreadTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, a, b := &spreading{}, client.ObjectKey{Name: "a"}, client.ObjectKey{Name: "b"}
		done, err := s.turn(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		other, err := s.turn(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		other()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.turn(short, a); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second turn beside the first: %v", err)
		}
		done()
		if done, err = s.turn(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		done()
	})
}
