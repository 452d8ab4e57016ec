package rest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// bulkAtOnce is how many machines a bulk verb works on at a time: the store commits
	// them together.
	bulkAtOnce = 8
	// maxBulk bounds the machines of one request.
	maxBulk = 10_000
)

func bulkRoute() Route {
	return Route{
		Method: http.MethodPost, Path: "/bulk", Does: "Do one verb with many machines, or show what it would do", Role: RoleOperator,
		In: api.Bulk{}, Out: api.ApplyResult{}, Query: []string{"dryRun"}, handle: (*server).bulk,
	}
}

// did is what a verb did with one machine.
type did struct {
	outcome api.Outcome
	detail  string
	changes []api.Change
	skipped []string
}

// bulkDo does a verb with one machine. For a preview it is called with a server whose
// writes are thrown away.
type bulkDo func(ctx context.Context, s *server, h *hardware.Hardware) (did, error)

// bulkVerb reads the options of a verb, which may be nil.
type bulkVerb func(options *document.Node) (bulkDo, error)

// bulkOf is a verb with options of type O.
func bulkOf[O any](do func(ctx context.Context, s *server, h *hardware.Hardware, o O) (did, error)) bulkVerb {
	return func(n *document.Node) (bulkDo, error) {
		var o O
		if n != nil {
			errs := document.Decode(n, &o)
			for i := range errs {
				errs[i].Field = "options." + errs[i].Field
			}
			if len(errs) > 0 {
				return nil, &hardware.Invalid{Kind: "request", Name: "bulk", Errors: errs}
			}
		}
		return func(ctx context.Context, s *server, h *hardware.Hardware) (did, error) { return do(ctx, s, h, o) }, nil
	}
}

// bulk does one verb with many machines. One that fails stops no other.
func (s *server) bulk(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	on, err := s.forRequest(r)
	if err != nil {
		return err
	}
	n, err := document1(w, r)
	if err != nil {
		return err
	}
	options := n.Cut("options")
	var in api.Bulk
	if errs := document.Decode(n, &in); len(errs) > 0 {
		return &hardware.Invalid{Kind: "request", Name: "bulk", Errors: errs}
	}
	verb, ok := bulkVerbs()[in.Verb]
	if !ok {
		known := slices.Sorted(maps.Keys(bulkVerbs()))
		hint := "verbs: " + strings.Join(known, ", ")
		if near := hardware.Nearest(in.Verb, known); len(near) > 0 {
			hint = "did you mean " + near[0] + "? " + hint
		}
		return badRequest(hint, "verb %.40q is not known", in.Verb)
	}
	do, err := verb(options)
	if err != nil {
		return err
	}
	machines, err := s.chosen(ctx, in)
	if err != nil {
		return err
	}
	plan := make([]*planned, len(machines))
	for i, h := range machines {
		plan[i] = &planned{result: api.Applied{Index: i, Kind: api.KindHardware, Name: h.Meta.Name, State: h.Status.State, Result: api.OutcomeSkipped}}
	}
	if !on.dry && (in.Confirm == nil || *in.Confirm != len(machines)) {
		return &api.Problem{
			Status: http.StatusConflict, Code: api.CodeConflict, Results: results(plan),
			Detail: fmt.Sprintf("%s is for %d machines, which the request does not confirm; nothing was done", in.Verb, len(machines)),
			Hint:   fmt.Sprintf("look at what it would do with ?dryRun=true, then send confirm: %d", len(machines)),
		}
	}
	wrong := on.doAll(ctx, plan, machines, do)
	toldOf(ctx).part = doneInPart(plan, in.Verb+" of %d of %d machines")
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, p := range plan {
		if p.err != nil {
			s.logInternal(r, p.err)
		}
	}
	if wrong > 0 && !on.dry {
		return applyProblem(plan, api.CodePartiallyApplied, fmt.Sprintf("%s failed for %d of %d machines", in.Verb, wrong, len(plan)))
	}
	return writeJSON(w, http.StatusOK, api.ApplyResult{Results: results(plan), DryRun: on.dry})
}

// doneInPart says in format how many of all were done something with; empty for none.
func doneInPart(plan []*planned, format string) string {
	n := 0
	for _, p := range plan {
		switch p.result.Result {
		case api.OutcomeCreated, api.OutcomeChanged, api.OutcomeDeleted, api.OutcomeDone:
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n, len(plan))
}

// doAll works on several machines at a time and counts the failures.
func (s *server) doAll(ctx context.Context, plan []*planned, machines []*hardware.Hardware, do bulkDo) int {
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(bulkAtOnce, len(plan)) {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					continue // what is left stays skipped
				}
				err := CallerFrom(ctx).MayAct(machines[i])
				var d did
				if err == nil {
					err = survive(func() (err error) {
						d, err = do(ctx, s, machines[i])
						return err
					})
				}
				p := plan[i]
				p.err = err
				p.result.Result, p.result.Detail, p.result.Changes, p.result.Skipped = d.outcome, d.detail, d.changes, d.skipped
			}
		})
	}
	for i := range plan {
		next <- i
	}
	close(next)
	wg.Wait()
	wrong := 0
	for _, p := range plan {
		if p.err != nil {
			wrong++
		}
	}
	return wrong
}

// chosen are the machines that the request means, by name, of those that the caller
// sees.
func (s *server) chosen(ctx context.Context, in api.Bulk) ([]*hardware.Hardware, error) {
	c := hardware.NewChecker("request", "bulk")
	sel, err := hardware.ParseSelector(in.Selector)
	c.Add("selector", err)
	var states []hardware.State
	if len(in.State) > 0 {
		states, err = oneOf("state", strings.Join(in.State, ","), hardware.States())
		c.Add("state", err)
	}
	switch picky := !sel.Empty() || len(states) > 0; {
	case len(in.Names) > 0 && (in.Selector != "" || in.All):
		c.Addf("names", "are given beside a selector or all (give one of them)")
	case len(in.Names) == 0 && !picky && !in.All:
		c.Addf("names", "are missing, as are selector and state (say all: true if every machine is meant)")
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	var out []*hardware.Hardware
	if len(in.Names) > 0 {
		names := slices.Compact(slices.Sorted(slices.Values(in.Names)))
		for _, name := range names {
			h, err := s.hardware.find(ctx, name)
			if err != nil {
				return nil, err
			}
			out = append(out, h)
		}
	} else if out, err = s.hardware.all(ctx); err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(slices.Clone(out), func(h *hardware.Hardware) bool {
		return !sel.Matches(h.Meta.Labels) || (len(states) > 0 && !slices.Contains(states, h.Status.State))
	})
	if len(out) > maxBulk {
		return nil, badRequest("choose fewer with a selector", "%d machines are more than the %d of one request", len(out), maxBulk)
	}
	return out, nil
}
