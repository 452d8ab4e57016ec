package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// bulkVerbs are the verbs of POST /bulk. Those of the engine say themselves what
// speaks against them; a preview runs them on an engine that writes nowhere.
func bulkVerbs() map[string]bulkVerb {
	return map[string]bulkVerb{
		"hold": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, _ struct{}) (did, error) {
			return s.bulkHold(ctx, h, true)
		}),
		"unhold": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, _ struct{}) (did, error) {
			return s.bulkHold(ctx, h, false)
		}),
		"label": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Label) (did, error) {
			return s.bulkLabel(ctx, h, o)
		}),
		"delete": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Delete) (did, error) {
			skipped, err := s.hardware.erase(ctx, h, 0, o.Force)
			return did{outcome: api.OutcomeDeleted, skipped: skipped}, err
		}),
		"accept": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Note) (did, error) {
			return s.bulkState(ctx, h, s.Engine.Accept(ctx, h.Meta.UID, o.Note))
		}),
		"maintenance": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Note) (did, error) {
			return s.bulkState(ctx, h, s.Engine.SetMaintenance(ctx, h.Meta.UID, !o.Off, o.Note))
		}),
		"retire": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Note) (did, error) {
			skipped, err := s.Engine.Retire(ctx, h.Meta.UID, o.Force, o.Note)
			d, err := s.bulkState(ctx, h, err)
			d.skipped = skipped
			return d, err
		}),
		"release": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Release) (did, error) {
			name, skipped, err := s.Engine.Release(ctx, h.Meta.UID, workflow.ReleaseInput{Claim: o.Claim, Force: o.Force, Why: o.Reason})
			d, err := s.bulkState(ctx, h, err)
			if d.skipped = skipped; name != "" {
				d.detail += ", workflow " + name
			}
			return d, err
		}),
		"cancel": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Cancel) (did, error) {
			return s.bulkCancel(ctx, h, cancelReason(o))
		}),
		"inspect": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, _ struct{}) (did, error) {
			return s.bulkWorkflow(ctx, "", inspectSpec(h))
		}),
		"provision": bulkProvision,
		"power": bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Power) (did, error) {
			if err := checkPower(o); err != nil {
				return did{}, err
			}
			out, err := s.Engine.Power(ctx, h.Meta.UID, string(o.Action), o.NextBoot)
			if err != nil {
				return did{}, powerProblem(h, err)
			}
			return did{outcome: api.OutcomeDone, detail: out.Message}, nil
		}),
	}
}

// bulkProvision installs what the request says on each machine. A list of checksums is
// read once, of the image that all get.
func bulkProvision(options *document.Node) (bulkDo, error) {
	var once sync.Once
	var sum string
	var wrong error
	return bulkOf(func(ctx context.Context, s *server, h *hardware.Hardware, o api.Provision) (did, error) {
		if o.Name != "" {
			return did{}, badRequest("leave it out: each machine's workflow gets a name of its own", "options.name is for one machine")
		}
		if o.DryRun {
			return did{}, badRequest("ask with ?dryRun=true", "options.dryRun is for one machine")
		}
		once.Do(func() {
			wrong = errors.New("the checksum was not looked up") // where that panics, nothing is installed without one
			wrong = s.provisionChecksum(ctx, &o)
			sum = o.Checksum
		})
		if wrong != nil {
			return did{}, wrong
		}
		o.Checksum = sum
		spec, err := s.provisionFor(ctx, h, &o)
		if err != nil {
			return did{}, err
		}
		return s.bulkWorkflow(ctx, "", spec)
	})(options)
}

func (s *server) bulkHold(ctx context.Context, h *hardware.Hardware, hold bool) (did, error) {
	if h.Status.Hold == hold {
		return did{outcome: api.OutcomeUnchanged}, nil
	}
	return s.bulkState(ctx, h, s.Engine.SetHold(ctx, h.Meta.UID, hold))
}

// bulkState says what a verb made of a machine, unless it failed with err.
func (s *server) bulkState(ctx context.Context, was *hardware.Hardware, err error) (did, error) {
	if err != nil {
		return did{}, err
	}
	now, err := s.Records.HardwareByName(ctx, was.Meta.Name)
	if err != nil {
		return did{outcome: api.OutcomeDone}, err // it is done all the same
	}
	a, b := stateText(was), stateText(now)
	if a == b {
		return did{outcome: api.OutcomeDone, detail: b}, nil
	}
	return did{outcome: api.OutcomeChanged, detail: a + " → " + b}, nil
}

// stateText is where a machine is in its life, in words.
func stateText(h *hardware.Hardware) string {
	s := string(h.Status.State)
	if h.Status.Hold {
		s += ", on hold"
	}
	if h.Status.Maintenance {
		s += ", in maintenance"
	}
	return s
}

// bulkCancel ends the machine's active workflow; one without is as it should be.
func (s *server) bulkCancel(ctx context.Context, h *hardware.Hardware, why string) (did, error) {
	none := did{outcome: api.OutcomeUnchanged, detail: "no workflow is active"}
	if h.Status.Workflow == "" {
		return none, nil
	}
	old, err := s.workflows.get(ctx, h.Status.Workflow)
	if err != nil || old.Status.State.Ended() {
		if errors.Is(err, workflow.ErrNotFound) {
			err = nil
		}
		return none, err
	}
	was := old.Status.State
	w, err := s.Engine.CancelWorkflow(ctx, old.Meta.Name, why)
	if err != nil {
		return did{}, err
	}
	if !w.Status.State.Ended() {
		return did{outcome: api.OutcomeDone, detail: fmt.Sprintf("workflow %s stops when its worker has stopped", w.Meta.Name)}, nil
	}
	return did{outcome: api.OutcomeChanged, detail: fmt.Sprintf("workflow %s: %s → %s", w.Meta.Name, was, w.Status.State)}, nil
}

func (s *server) bulkWorkflow(ctx context.Context, name string, spec workflow.WorkflowSpec) (did, error) {
	w, err := s.Engine.CreateWorkflow(ctx, name, spec)
	if err != nil {
		return did{}, err
	}
	return did{outcome: api.OutcomeCreated, detail: fmt.Sprintf("workflow %s with %d actions", w.Meta.Name, len(w.Status.Actions))}, nil
}

// bulkLabel sets and removes labels.
func (s *server) bulkLabel(ctx context.Context, h *hardware.Hardware, o api.Label) (did, error) {
	rs := s.hardware
	for range overtakenTries {
		old, err := rs.get(ctx, h.Meta.Name)
		if err != nil {
			return did{}, err
		}
		v := *old
		v.Meta.Labels = map[string]string{}
		maps.Copy(v.Meta.Labels, old.Meta.Labels)
		maps.Copy(v.Meta.Labels, o.Set)
		for _, k := range o.Remove {
			delete(v.Meta.Labels, k)
		}
		if err := rs.check(&v); err != nil {
			return did{}, err
		}
		written, changed, err := rs.replace(ctx, &v, old, 0)
		switch {
		case errors.Is(err, workflow.ErrConflict):
			continue
		case err != nil:
			return did{}, err
		case !changed:
			return did{outcome: api.OutcomeUnchanged}, nil
		}
		changes, err := rs.changes(ctx, old, written)
		return did{outcome: api.OutcomeChanged, changes: changes}, err
	}
	return did{}, workflow.ErrConflict
}
