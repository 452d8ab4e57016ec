package rest

import (
	"context"
	"testing"
	"testing/synctest"
)

// Large bodies take turns, small ones pass by, and who gives up holds up nobody.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := make(gate, largeAtOnce)
		request := func(ctx context.Context) context.Context { return withTicket(ctx, &ticket{gate: g}) }
		first := request(t.Context())
		if err := enter(first, largeBody); err != nil {
			t.Fatal(err)
		}
		if err := enter(first, largeBody); err != nil { // once is enough
			t.Fatal(err)
		}
		if err := enter(request(t.Context()), largeBody-1); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- enter(request(gone), largeBody) }()
		second := request(t.Context())
		in := make(chan error, 1)
		go func() { in <- enter(second, largeBody) }()
		synctest.Wait()
		if len(ended)+len(in) != 0 {
			t.Fatal("two are in at a time")
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("got %v", err)
		}
		through(first)
		through(first)
		if err := <-in; err != nil {
			t.Error(err)
		}
		through(second)
		if len(g) != 0 {
			t.Error("a ticket is left")
		}
	})
}
