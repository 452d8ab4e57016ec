package rest

import (
	"context"
	"net/http"
	"sync/atomic"
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

// The bodies that are read at a time have a bound together, and give back what they took.
func TestRoomForBodies(t *testing.T) {
	t.Parallel()
	var reading atomic.Int64
	ctx := withTicket(t.Context(), &ticket{gate: make(gate, 1), reading: &reading})
	var frees []func()
	for {
		free, err := room(ctx, -1)
		if err != nil {
			if problem(err).Status != http.StatusServiceUnavailable {
				t.Errorf("refused with %v", err)
			}
			break
		}
		frees = append(frees, free)
	}
	if len(frees) != bodyBudget/maxBody {
		t.Errorf("%d bodies of unknown length at a time", len(frees))
	}
	for _, free := range frees {
		free()
	}
	if free, err := room(ctx, 10); err != nil || reading.Load() != 10 {
		t.Errorf("after all ended: %d bytes, %v", reading.Load(), err)
	} else {
		free()
	}
}
