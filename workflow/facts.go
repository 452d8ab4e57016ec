package workflow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Facts replaces the machine's facts with what its worker found in this boot. What is
// not as it was is an event, and so is what speaks against its being this machine; both
// stop nothing.
func (s *Session) Facts(ctx context.Context, f *hardware.Facts) error {
	f.Cap()
	f.Collected = s.e.c.Now()
	err := s.facts(ctx, f)
	if err == nil && s.scope == hardware.ScopeEnrol {
		s.e.startByRule(ctx, s.m.uid)
	}
	return err
}

func (s *Session) facts(ctx context.Context, f *hardware.Facts) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.over(); err != nil {
		return err
	}
	if s.scope != hardware.ScopeEnrol {
		return s.report(ctx, f)
	}
	if !s.m.reports.take(f.Collected, 1/enrolEvery.Seconds(), enrolReports) {
		return &Later{hardware.ReasonRateLimited, fmt.Sprintf("facts were reported again and again, once in %v is enough", enrolEvery)}
	}
	var err error
	if mac, stranger := hardware.StrangerMAC(s.m.uid); stranger {
		err = s.e.enrol(ctx, s, mac, f)
	} else if err = s.report(ctx, f); err == nil {
		err = s.e.reconsider(ctx, s.m)
	}
	return err
}

func (s *Session) report(ctx context.Context, f *hardware.Facts) error {
	return s.retry(ctx, func() error {
		h, mc, err := s.e.load(ctx, s.m.uid)
		if err != nil {
			return err
		}
		if s.m.reported == s.boot && sameFacts(h.Facts, f) {
			return nil
		}
		events := s.e.findings(h, &mc.Status, s.boot, f)
		if s.scope == hardware.ScopeEnrol {
			progress(mc) // it did what it was booted for
		}
		err = s.e.c.Store.Commit(ctx, &Change{Machine: mc, Facts: f, Events: events})
		if err == nil {
			s.m.reported = s.boot
		}
		return err
	})
}

// sameFacts reports whether two reports differ in their time at most.
func sameFacts(a, b *hardware.Facts) bool {
	if a == nil || b == nil {
		return a == b
	}
	x := *a
	x.Collected = b.Collected
	return reflect.DeepEqual(&x, b)
}

func (s *Session) retry(ctx context.Context, f func() error) error {
	for ctx.Err() == nil {
		if err := f(); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return ctx.Err()
}

// findings are the events of a report of facts, over the record with those of before.
// What is in conflict is written into st.
func (e *Engine) findings(h *hardware.Hardware, st *hardware.Status, boot string, f *hardware.Facts) []Event {
	out := []Event{e.event(h, boot, hardware.ReasonFactsReported,
		fmt.Sprintf("%d CPUs, %d MiB, %d disks, %d NICs", f.CPUs, f.MemoryBytes>>20, len(f.Disks), len(f.NICs)))}
	if d := hardware.Differences(h.Facts, f); len(d) > 0 {
		out = append(out, e.event(h, boot, hardware.ReasonFactsChanged, hardware.PlainText(strings.Join(d, "; "), 512)))
	}
	var others []*hardware.Hardware
	if e.c.Alike != nil {
		others = e.c.Alike(f)
	}
	was := st.Conflicts
	st.Conflicts = hardware.Conflicts(h, f, others, e.c.Now())
	if fresh := newConflicts(was, st.Conflicts); len(fresh) > 0 {
		out = append(out, e.event(h, boot, hardware.ReasonConflict, hardware.PlainText(strings.Join(fresh, "; "), 512)))
	}
	return out
}

// newConflicts are the details of those that were not there before.
func newConflicts(was, is []hardware.IdentityConflict) []string {
	var out []string
	for _, c := range is {
		old := false
		for _, w := range was {
			old = old || c.Is(w)
		}
		if !old {
			out = append(out, c.Detail)
		}
	}
	return out
}
