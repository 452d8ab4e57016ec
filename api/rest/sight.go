package rest

import (
	"context"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// sightEvery is how long a stream believes that a machine is, or is not, the
// caller's to see.
const sightEvery = 2 * time.Second

// sight says which machines' events a caller sees. It belongs to one request.
type sight struct {
	s        *server
	limited  bool
	machines map[string]sighted // by uid
}

type sighted struct {
	seen bool
	at   time.Time
}

func (s *server) newSight(ctx context.Context) *sight {
	return &sight{s: s, limited: CallerFrom(ctx).Limited(), machines: map[string]sighted{}}
}

// event reports whether the caller sees an event: a claimer sees those of its
// machines only.
func (t *sight) event(ctx context.Context, ev *workflow.Event) (bool, error) {
	return t.machine(ctx, ev.Machine, ev.Hardware)
}

func (t *sight) machine(ctx context.Context, name, uid string) (bool, error) {
	if !t.limited {
		return true, nil
	}
	if uid == "" {
		return false, nil
	}
	now := t.s.Now()
	if m, ok := t.machines[uid]; ok && now.Sub(m.at) < sightEvery {
		return m.seen, nil
	}
	seen, err := followsMachine(ctx, t.s.Records, name, uid)
	if err == nil {
		t.machines[uid] = sighted{seen, now}
	}
	return seen, err
}
