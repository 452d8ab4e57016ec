package machine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
