package rest

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/rackstrap/rackstrap/api"
)

const (
	// largeBody is from what size on bodies are read one after the other: a tree of
	// values is up to fifty times as large as its text.
	largeBody = 256 << 10
	// largeAtOnce is how many large bodies are in work at a time.
	largeAtOnce = 1
	// bodyBudget bounds the bodies that are being read at a time, in bytes together: a
	// connection with many streams must not fill our memory.
	bodyBudget = 128 << 20
)

// gate lets few requests with large bodies in at a time.
type gate chan struct{}

// ticket is one request's way through the gate. It is used by one goroutine.
type ticket struct {
	gate gate
	held bool
	// reading is what all requests' bodies may take now; the server's.
	reading *atomic.Int64
}

type ticketKey struct{}

func withTicket(ctx context.Context, t *ticket) context.Context {
	return context.WithValue(ctx, ticketKey{}, t)
}

// room takes the room for a body of that length (negative is unknown) and returns what
// gives it back. It does not wait: a client that is told "busy" comes again.
func room(ctx context.Context, length int64) (free func(), err error) {
	t, ok := ctx.Value(ticketKey{}).(*ticket)
	if !ok || t.reading == nil {
		return func() {}, nil
	}
	if length < 0 || length > maxBody {
		length = maxBody
	}
	if t.reading.Add(length) > bodyBudget {
		t.reading.Add(-length)
		return nil, &api.Problem{
			Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: "too many large requests at a time", Hint: "try again in a moment",
		}
	}
	return func() { t.reading.Add(-length) }, nil
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
