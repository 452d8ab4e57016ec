package store

import (
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// ids makes ULIDs that also sort within a millisecond, in the order of the calls:
// of several of one millisecond, each is the one before plus one, as the ULID
// specification has it.
type ids struct {
	mu   sync.Mutex
	last string
}

const (
	crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	ulidTime  = 10 // characters of time at the front
)

func (g *ids) next(now time.Time) string {
	id := workflow.NewID(now)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last != "" && id[:ulidTime] == g.last[:ulidTime] {
		if up, ok := increment(g.last); ok {
			id = up
		}
	}
	g.last = id
	return id
}

// increment adds one to the random part; false where it overflows.
func increment(id string) (string, bool) {
	b := []byte(id)
	for i := len(b) - 1; i >= ulidTime; i-- {
		for d := range len(crockford) - 1 {
			if b[i] == crockford[d] {
				b[i] = crockford[d+1]
				return string(b), true
			}
		}
		b[i] = crockford[0]
	}
	return "", false
}
