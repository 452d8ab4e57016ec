package rest

import "context"

const (
	// largeBody is from what size on bodies are read one after the other: a tree of
	// values is up to fifty times as large as its text.
	largeBody = 256 << 10
	// largeAtOnce is how many large bodies are in work at a time.
	largeAtOnce = 1
)

// gate lets few requests with large bodies in at a time.
type gate chan struct{}

// ticket is one request's way through the gate. It is used by one goroutine.
type ticket struct {
	gate gate
	held bool
}

type ticketKey struct{}

func withTicket(ctx context.Context, t *ticket) context.Context {
	return context.WithValue(ctx, ticketKey{}, t)
}

// enter waits for the request's turn, or for the end of ctx, if the body is large.
func enter(ctx context.Context, size int) error {
	t, ok := ctx.Value(ticketKey{}).(*ticket)
	if !ok || t.held || size < largeBody {
		return nil
	}
	select {
	case t.gate <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// through lets the next one in: the tree of the body is not needed any more.
func through(ctx context.Context) {
	if t, ok := ctx.Value(ticketKey{}).(*ticket); ok && t.held {
		<-t.gate
		t.held = false
	}
}
