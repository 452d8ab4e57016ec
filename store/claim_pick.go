package store

import (
	"context"
	"sync"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// taking has what is being written for a claim right now: machines and claim ids.
// Others leave those alone until it is known how the write ended; so many claims at
// once share one sync of the disk and do not fight for one machine. It is a matter
// of speed: that no machine is given twice, the transaction sees to.
type taking struct {
	mu  sync.Mutex
	now map[string]chan struct{} // closed when it is decided
}

// try takes the key; where somebody else has it, busy is closed when it is free.
func (t *taking) try(key string) (done func(), busy <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.now[key]; ok {
		return nil, c
	}
	if t.now == nil {
		t.now = map[string]chan struct{}{}
	}
	c := make(chan struct{})
	t.now[key] = c
	return func() {
		t.mu.Lock()
		delete(t.now, key)
		t.mu.Unlock()
		close(c)
	}, nil
}

// wait takes the key as soon as nobody else has it.
func (t *taking) wait(ctx context.Context, key string) (done func(), err error) {
	for {
		done, busy := t.try(key)
		if done != nil {
			return done, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// pick reserves the best machine for a claim until done is called. Where all that
// fit are being taken it waits: one of those writes may fail.
func (db *DB) pick(ctx context.Context, c *hardware.Claim, m *hardware.Matcher, within hardware.Selector) (uid string, done func(), err error) {
	for {
		free, err := db.candidates(c, within)
		if err != nil {
			return "", nil, err
		}
		var wait <-chan struct{}
		for h := range m.Best(c.Meta.Name, free, db.view.Active) {
			done, busy := db.taking.try(prefixHardware + h.Meta.UID)
			if done != nil {
				return h.Meta.UID, done, nil
			}
			wait = busy
		}
		if wait == nil {
			return "", nil, db.noCandidate(c, m, within)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	}
}

// candidates are the machines that may be free, by name; of all of them the Matcher
// says itself which the claim may look at, and looks no further than to the first.
func (db *DB) candidates(c *hardware.Claim, within hardware.Selector) ([]*hardware.Hardware, error) {
	if c.Spec.Hardware == "" {
		return db.view.freeHardware(), nil
	}
	h, ok := db.view.HardwareByName(c.Spec.Hardware)
	if !ok || !within.Matches(h.Meta.Labels) {
		return nil, named("hardware", c.Spec.Hardware, workflow.ErrNotFound)
	}
	return []*hardware.Hardware{h}, nil
}

// noCandidate says why none of the machines will do.
func (db *DB) noCandidate(c *hardware.Claim, m *hardware.Matcher, within hardware.Selector) error {
	all := matching(db.view.Hardware(), within, "")
	if c.Spec.Hardware != "" {
		var err error
		if all, err = db.candidates(c, within); err != nil {
			return err
		}
	}
	e := &hardware.NoCandidate{ID: c.Meta.Name, Machines: len(all), Against: map[hardware.Against]int{}}
	for _, h := range all {
		active := db.view.Active(h.Meta.UID)
		if why, fits := m.Fits(h, active); !fits {
			e.Against[why]++
		} else {
			return ErrConflict // it became free just now
		}
		if c.Spec.Hardware != "" {
			e.Hardware, e.Why = h.Meta.Name, m.Candidate(h, active, "").Against
		}
	}
	return e
}

// freeHardware lists the machines that are available, or kept as they are for a group,
// and nobody's, by name.
func (v *View) freeHardware() []*hardware.Hardware {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]*hardware.Hardware, len(v.free))
	for i, s := range v.free {
		out[i] = s.joined
	}
	return out
}

// matching keeps those of all that match, and the one that the claim has. The slice
// is used again.
func matching(all []*hardware.Hardware, s hardware.Selector, claim string) []*hardware.Hardware {
	if s.Empty() {
		return all
	}
	kept := all[:0]
	for _, h := range all {
		if s.Matches(h.Meta.Labels) || claim != "" && h.Status.Claim != nil && h.Status.Claim.ID == claim {
			kept = append(kept, h)
		}
	}
	return kept
}

// all is what is known of one machine, at one time; nil where there is none.
func (v *View) all(uid string) (h *hardware.Hardware, m workflow.Machine, active bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.machines[uid]
	if s == nil {
		return nil, m, false
	}
	return s.joined, s.machine, s.active
}

// refresh reads one machine from the store, for those who cannot wait until the
// watch has come to it.
func (v *View) refresh(ctx context.Context, uid string) error {
	var pages []Page
	for _, prefix := range []string{prefixHardware + part(uid) + "/", keyActive(uid)} {
		p, err := v.db.kv.List(ctx, Range{Prefix: prefix})
		if err != nil {
			return err
		}
		pages = append(pages, p)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	missing := map[string]uint64{ // and the revision at which they are
		keySpec(uid): pages[0].Revision, keyMachine(uid): pages[0].Revision, keyFacts(uid): pages[0].Revision, keyActive(uid): pages[1].Revision,
	}
	for _, p := range pages {
		for _, e := range p.Entries {
			delete(missing, e.Key)
			if err := v.put(e.Key, e.Value, e.Revision); err != nil {
				return err
			}
		}
	}
	for key, rev := range missing {
		v.delete(key, rev)
	}
	return nil
}
