package rest

import (
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

// Timeline sorts the events of one machine into its boots and says where the time
// of each went. An event that belongs to no boot is shown in the one that ran then.
func Timeline(machine string, events []workflow.Event, now time.Time) api.Timeline {
	out := api.Timeline{Hardware: machine, Boots: []api.BootTimeline{}}
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b workflow.Event) int { return a.First.Compare(b.First) })
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
			out.Boots = append(out.Boots, api.BootTimeline{Boot: e.Boot, Started: e.First})
			current = i
		}
		b := &out.Boots[i]
		b.Lines = append(b.Lines, api.TimelineLine{At: hardware.Duration(e.First.Sub(b.Started)), Event: api.NewEvent(e)})
	}
	for i := range out.Boots {
		last := i == len(out.Boots)-1
		out.Boots[i].Split = split(out.Boots[i], last, now)
	}
	return out
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

// split cuts a boot at its milestones, then at its actions.
func split(b api.BootTimeline, last bool, now time.Time) []api.Span {
	var out []api.Span
	from := b.Started
	for _, m := range milestones() {
		i := slices.IndexFunc(b.Lines, func(l api.TimelineLine) bool { return l.Reason == m.reason })
		if i < 0 || b.Lines[i].First.Before(from) {
			continue
		}
		to := b.Lines[i].First
		out = append(out, api.Span{Name: m.name, Took: hardware.Duration(to.Sub(from)), Bytes: b.Lines[i].Bytes, Ended: true})
		from = to
	}
	open := map[string]time.Time{}
	var order []string
	var finished time.Time
	for _, l := range b.Lines {
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
			out = append(out, api.Span{Name: l.Action, Took: hardware.Duration(l.First.Sub(began)), Bytes: l.Bytes, Ended: true})
			delete(open, l.Action)
			order = slices.DeleteFunc(order, func(a string) bool { return a == l.Action })
		case hardware.ReasonWorkflowSucceeded:
			finished = l.First
		case hardware.ReasonOSSeen:
			if !finished.IsZero() {
				out = append(out, api.Span{Name: "restart into the system", Took: hardware.Duration(l.First.Sub(finished)), Ended: true})
				finished = time.Time{}
			}
		}
	}
	for _, a := range order {
		if last {
			out = append(out, api.Span{Name: a, Took: hardware.Duration(now.Sub(open[a]))})
		}
	}
	return out
}
