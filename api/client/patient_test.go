package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A wait outlives a restart of the daemon; other errors end it, and so does its ctx.
func TestPatient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		got, err := patient(t.Context(), func() (int, error) {
			if n++; n < 5 {
				return 0, &Unreachable{Where: "s", Err: errors.New("gone")}
			}
			return 7, nil
		})
		if got != 7 || err != nil || n != 5 {
			t.Errorf("%d, %v after %d tries", got, err, n)
		}
		refused := errors.New("refused")
		if _, err := patient(t.Context(), func() (int, error) { return 0, refused }); !errors.Is(err, refused) {
			t.Errorf("a refusal: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := patient(ctx, func() (int, error) { return 0, &Unreachable{Where: "s", Err: refused} }); !errors.Is(err, context.Canceled) {
			t.Errorf("after its end: %v", err)
		}
	})
}
