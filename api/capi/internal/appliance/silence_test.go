package appliance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api/client"
)

// Who waited in vain spares the others the wait; one at a time finds out whether the
// appliance is back. One that refuses at once costs nothing, and nobody is spared.
func TestSilence(t *testing.T) {
	t.Parallel()
	now, s := time.Unix(1000, 0), &silence{}
	is := func(what string, want error) {
		t.Helper()
		if got := s.spared(now); !errors.Is(got, want) || (want == nil) != (got == nil) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	down := &client.Unreachable{Where: "https://a", Err: errors.New("no answer")}
	is("at first", nil)
	s.waited(now, down, time.Millisecond)
	is("refused at once", nil)
	s.waited(now, errors.New("not allowed"), time.Minute)
	is("an answer, if a slow one", nil)
	s.waited(now, down, 10*time.Second)
	is("waited in vain", down)
	now = now.Add(spared)
	is("one finds out", nil)
	is("the others do not", down)
	s.waited(now, context.DeadlineExceeded, 45*time.Second)
	is("still silent", context.DeadlineExceeded)
	now = now.Add(spared)
	is("one finds out again", nil)
	s.waited(now, nil, 10*time.Second)
	is("it is back", nil)
	is("for all", nil)
}
