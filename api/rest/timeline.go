package rest

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func (s *server) timeline(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := queryKnown(q, "boot", "limit"); err != nil {
		return err
	}
	h, err := s.hardware.find(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	if c := CallerFrom(r.Context()); !c.Follows(h) {
		return forbidden("", "%q is held by a claim of another owner, and the token %q follows its own", h.Meta.Name, c.Name)
	}
	limit, err := number(q, "limit", defaultEvents, maxEvents)
	if err != nil {
		return err
	}
	events, err := s.Records.Events(r.Context(), workflow.EventQuery{Hardware: h.Meta.UID, Boot: q.Get("boot"), Limit: int(limit)})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, Timeline(h.Meta.Name, events, s.Now()))
}

// bySwitch is how long after a machine was to be switched on a boot is still taken for
// what came of it.
const bySwitch = time.Hour

// Timeline sorts the events of one machine into its boots and says where the time
// of each went. An event that belongs to no boot is shown in the one that ran then; what
// switched the machine on, in the boot that came of it.
func Timeline(machine string, events []workflow.Event, now time.Time) api.Timeline {
	out := api.Timeline{Hardware: machine, Boots: []api.BootTimeline{}}
	events = slices.Clone(events)
	// ids of one moment sort as the events came
	slices.SortStableFunc(events, func(a, b workflow.Event) int { return cmp.Or(came(&a).Compare(came(&b)), cmp.Compare(a.ID, b.ID)) })
	boots := map[string]int{}
	current := -1
	for _, e := range events {
		i, known := boots[e.Boot]
		switch {
		case e.Boot == "" && current >= 0:
			i = current
		case !known:
			i = len(out.Boots)
			boots[e.Boot] = i
			b := api.BootTimeline{Boot: e.Boot, Started: came(&e)}
			if current >= 0 {
				switchedOn(&out.Boots[current], &b)
			}
			out.Boots = append(out.Boots, b)
			current = i
		}
		b := &out.Boots[i]
		b.Lines = append(b.Lines, api.TimelineLine{Event: api.NewEvent(e)})
	}
	out.Boots = slices.DeleteFunc(out.Boots, func(b api.BootTimeline) bool { return len(b.Lines) == 0 })
	for i := range out.Boots {
		b, last := &out.Boots[i], i == len(out.Boots)-1
		for j := range b.Lines {
			b.Lines[j].At = hardware.Duration(came(&b.Lines[j].Event.Event).Sub(b.Started))
		}
		b.Split = split(*b, last, now)
		b.Ended, b.Fix = endedWithout(*b, last)
	}
	return out
}

// came is when an event began to matter: a controller answers when it is done, and the
// machine may have asked for its address by then.
func came(e *workflow.Event) time.Time {
	if e.Boot == "" && workflow.SwitchesOn(e) {
		return e.First.Add(-time.Duration(e.Took))
	}
	return e.First
}

// switchedOn moves what switched the machine on, and what happened meanwhile, from
// the boot before to the one that came of it.
func switchedOn(was, is *api.BootTimeline) {
	from := -1
	begun := was.Boot == ""
	for i, l := range was.Lines {
		begun = begun || l.Event.Event.Boot != "" // what came before switched that one on
		if begun && l.Event.Event.Boot == "" && workflow.SwitchesOn(&l.Event.Event) && is.Started.Sub(came(&l.Event.Event)) <= bySwitch {
			from = i
		}
	}
	if from < 0 {
		return
	}
	left := slices.Clone(was.Lines[:from])
	for _, l := range was.Lines[from:] {
		if l.Event.Event.Boot == "" {
			is.Lines = append(is.Lines, l)
		} else {
			left = append(left, l)
		}
	}
	was.Lines, is.Started = left, came(&is.Lines[0].Event.Event)
}

// endedWithout says why a boot that was on its way to a worker ended without one, and
// what to do.
func endedWithout(b api.BootTimeline, last bool) (why, fix string) {
	var events []workflow.Event
	for _, l := range b.Lines {
		events = append(events, l.Event.Event)
	}
	return workflow.EndedWithout(events, !last)
}

// milestones end the parts of a boot before the first action.
func milestones() []struct {
	reason hardware.Reason
	name   string
} {
	return []struct {
		reason hardware.Reason
		name   string
	}{
		{hardware.ReasonAcked, "address"},
		{hardware.ReasonProgramSent, "boot program"},
		{hardware.ReasonScriptSent, "boot script"},
		{hardware.ReasonKernelSent, "kernel"},
		{hardware.ReasonInitramfsSent, "initramfs"},
		{hardware.ReasonWorkerConnected, "worker start"},
	}
}

// startsWithin is how long a restart is shown as one that goes on: a system with a
// fixed address that does not phone home is never seen.
const startsWithin = 30 * time.Minute

// splitter cuts a boot into its parts.
type splitter struct {
	boot api.BootTimeline
	now  time.Time
	out  []api.Span
}

// add is the part between two moments; a zero to is now, and the part goes on.
func (s *splitter) add(name string, from, to time.Time, bytes int64) {
	ended := !to.IsZero()
	if !ended {
		to = s.now
	}
	s.out = append(s.out, api.Span{
		Name: name, At: hardware.Duration(from.Sub(s.boot.Started)), Took: hardware.Duration(to.Sub(from)), Bytes: bytes, Ended: ended,
	})
}

// split cuts a boot at its milestones, then at its actions.
func split(b api.BootTimeline, last bool, now time.Time) []api.Span {
	s := &splitter{boot: b, now: now}
	from := s.start(last)
	s.work(from, last)
	return s.out
}

// start cuts what comes before the first action and returns where that ends.
func (s *splitter) start(last bool) time.Time {
	b := s.boot
	from := b.Started
	if i := slices.IndexFunc(b.Lines, func(l api.TimelineLine) bool { return l.Boot != "" }); i > 0 && b.Lines[i].First.After(from) {
		name := "power on"
		if b.Lines[0].Reason == hardware.ReasonPowerByHand {
			name = "somebody switches it on"
		}
		s.add(name, from, b.Lines[i].First, 0)
		from = b.Lines[i].First
	}
	next := milestones()
	for n, m := range milestones() {
		i := slices.IndexFunc(b.Lines, func(l api.TimelineLine) bool { return l.Reason == m.reason })
		if i < 0 || b.Lines[i].First.Before(from) {
			continue
		}
		s.add(m.name, from, b.Lines[i].First, b.Lines[i].Bytes)
		from, next = b.Lines[i].First, milestones()[n+1:]
	}
	if last && len(next) > 0 && s.comes(from) {
		s.add(next[0].name, from, time.Time{}, 0)
	}
	return from
}

// comes reports whether a boot that got on at from is on its way to the worker still.
func (s *splitter) comes(from time.Time) bool {
	wanted := false
	for _, l := range s.boot.Lines {
		switch l.Reason {
		case hardware.ReasonBootProgram, hardware.ReasonBootScript, hardware.ReasonScriptSent:
			wanted = true
		case hardware.ReasonSentToDisk, hardware.ReasonWorkerConnected:
			return false
		}
	}
	why, _ := endedWithout(s.boot, true)
	return wanted && why == "" && s.now.Sub(from) < hardware.BootDeadline
}

// work cuts what comes after from, the worker's start: the actions and the restart.
func (s *splitter) work(from time.Time, last bool) {
	open := map[string]time.Time{}
	var order []string
	var finished, seen time.Time
	up := false
	for _, l := range s.boot.Lines {
		switch l.Reason {
		case hardware.ReasonActionStarted:
			if _, ok := open[l.Action]; !ok {
				open[l.Action] = l.First
				order = append(order, l.Action)
			}
		case hardware.ReasonActionSucceeded, hardware.ReasonActionFailed, hardware.ReasonActionTimeout, hardware.ReasonActionInterrupted:
			began, ok := open[l.Action]
			if !ok {
				continue
			}
			s.add(l.Action, began, l.First, l.Bytes)
			delete(open, l.Action)
			order = slices.DeleteFunc(order, func(a string) bool { return a == l.Action })
		case hardware.ReasonWorkflowSucceeded:
			finished = l.First
		case hardware.ReasonOSSeen:
			if !finished.IsZero() && seen.IsZero() {
				s.add("restart into the system", finished, l.First, 0)
				seen = l.First
			}
		case hardware.ReasonOSUp:
			switch {
			case up:
			case finished.IsZero() && len(s.out) > 0 && len(order) == 0: // a restart of its own, which the firmware began on the network
				s.add("first start of the system", from, l.First, 0)
			case finished.IsZero():
			case seen.IsZero():
				s.add("restart into the system", finished, l.First, 0)
			default:
				s.add("first start of the system", seen, l.First, 0)
			}
			up = true
		}
	}
	if last && !finished.IsZero() && seen.IsZero() && !up && s.now.Sub(finished) < startsWithin {
		s.add("restart into the system", finished, time.Time{}, 0)
	}
	for _, a := range order {
		if last {
			s.add(a, open[a], time.Time{}, 0)
		}
	}
}
