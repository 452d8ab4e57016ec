package rest

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Lifecycle is what the engine does with one machine, by its uid. Its errors are
// workflow.ErrNotFound, ErrConflict, ErrInUse and *hardware.Invalid.
type Lifecycle interface {
	Accept(ctx context.Context, uid, note string) error
	SetMaintenance(ctx context.Context, uid string, on bool, note string) error
	Retire(ctx context.Context, uid string, force bool, note string) (skipped []string, err error)
	Drop(ctx context.Context, uid, why string) (skipped []string, err error)
	Release(ctx context.Context, uid string, in workflow.ReleaseInput) (workflow string, skipped []string, err error)
	Power(ctx context.Context, uid, action, nextBoot string) (workflow.PowerOutcome, error)
}

func lifecycleRoutes() []Route {
	verb := func(name, does string, in, out any, claimer bool, h func(*server, http.ResponseWriter, *http.Request) error) Route {
		return Route{Method: http.MethodPost, Path: "/hardware/{name}/" + name, Does: does, Role: RoleOperator, Claimer: claimer, In: in, Out: out, handle: h}
	}
	provision := verb("provision", "Install an operating system", api.Provision{}, api.Provisioned{}, true, (*server).provision)
	provision.Query = []string{"dryRun"}
	return []Route{
		provision,
		verb("accept", "Vouch for a machine: a pending one becomes available, one in quarantine may be picked again", api.Note{}, hardware.Hardware{}, false, (*server).accept),
		verb("maintenance", "Say that a human works on a machine, or does no more", api.Note{}, hardware.Hardware{}, false, (*server).maintenance),
		verb("retire", "End a machine's life in the appliance", api.Note{}, api.Retired{}, false, (*server).retire),
		verb("release", "Give a machine back: wipe every disk, read it back, make it available", api.Release{}, api.Released{}, true, (*server).release),
		verb("inspect", "Boot the worker once, to learn what is in the machine", nil, api.Workflow{}, false, (*server).inspect),
		verb("power", "Switch a machine on or off, or ask whether it is on", api.Power{}, api.PowerResult{}, true, (*server).power),
	}
}

// acted reads the machine of the URL, if the caller may act on it.
func (s *server) acted(r *http.Request) (*hardware.Hardware, error) {
	h, err := s.hardware.find(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return nil, err
	}
	return h, CallerFrom(r.Context()).MayAct(h)
}

// boundTo is the claim under which a claimer acts: the one that was looked at, so that
// a machine which was given to somebody else meanwhile is left alone.
func boundTo(ctx context.Context, h *hardware.Hardware, claim string) string {
	if claim == "" && CallerFrom(ctx).Limited() && h.Status.Claim != nil {
		return h.Status.Claim.ID
	}
	return claim
}

func (s *server) accept(w http.ResponseWriter, r *http.Request) error {
	return s.noted(w, r, "accept", func(h *hardware.Hardware, in api.Note) error {
		return s.Engine.Accept(r.Context(), h.Meta.UID, in.Note)
	})
}

func (s *server) maintenance(w http.ResponseWriter, r *http.Request) error {
	return s.noted(w, r, "maintenance", func(h *hardware.Hardware, in api.Note) error {
		return s.Engine.SetMaintenance(r.Context(), h.Meta.UID, !in.Off, in.Note)
	})
}

// noted is a verb with a note, which answers with the machine.
func (s *server) noted(w http.ResponseWriter, r *http.Request, verb string, do func(*hardware.Hardware, api.Note) error) error {
	var in api.Note
	if err := options(w, r, verb, &in); err != nil {
		return err
	}
	h, err := s.acted(r)
	if err != nil {
		return err
	}
	if err := do(h, in); err != nil {
		return err
	}
	return s.hardware.answer(r.Context(), w, http.StatusOK, h.Meta.Name)
}

func (s *server) retire(w http.ResponseWriter, r *http.Request) error {
	var in api.Note
	if err := options(w, r, "retire", &in); err != nil {
		return err
	}
	h, err := s.acted(r)
	if err != nil {
		return err
	}
	skipped, err := s.Engine.Retire(r.Context(), h.Meta.UID, in.Force, in.Note)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Retired{Hardware: h.Meta.Name, Skipped: skipped})
}

func (s *server) release(w http.ResponseWriter, r *http.Request) error {
	var in api.Release
	if err := options(w, r, "release", &in); err != nil {
		return err
	}
	h, err := s.acted(r)
	if err != nil {
		return err
	}
	if c := CallerFrom(r.Context()); in.Force && c.Limited() {
		return c.lacks(RoleOperator) // a machine with another's data on it is an operator's business
	}
	in.Claim = boundTo(r.Context(), h, in.Claim)
	name, skipped, err := s.Engine.Release(r.Context(), h.Meta.UID, workflow.ReleaseInput{Claim: in.Claim, Force: in.Force, Why: in.Reason})
	if err != nil {
		return err
	}
	now, err := s.Records.HardwareByName(r.Context(), h.Meta.Name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Released{Hardware: *now.Redacted(), Workflow: name, Skipped: skipped})
}

func (s *server) power(w http.ResponseWriter, r *http.Request) error {
	var in api.Power
	if err := options(w, r, "power", &in); err != nil {
		return err
	}
	h, err := s.acted(r)
	if err != nil {
		return err
	}
	if err := checkPower(in); err != nil {
		return err
	}
	out, err := s.Engine.Power(r.Context(), h.Meta.UID, string(in.Action), in.NextBoot)
	if err != nil {
		return powerProblem(h, err)
	}
	return writeJSON(w, http.StatusOK, api.PowerResult{Hardware: h.Meta.Name, Driver: out.Driver, State: out.State, Message: out.Message})
}

func checkPower(in api.Power) error {
	c := hardware.NewChecker("request", "power")
	switch in.Action {
	case api.PowerActionOn, api.PowerActionOff, api.PowerActionCycle, api.PowerActionStatus:
	default:
		c.Addf("action", "%.40q is not known (on, off, cycle or status)", string(in.Action))
	}
	switch {
	case in.NextBoot != "" && in.NextBoot != "network" && in.NextBoot != "disk":
		c.Addf("nextBoot", "%.40q is not known (network or disk)", in.NextBoot)
	case in.NextBoot != "" && in.Action != api.PowerActionOn && in.Action != api.PowerActionCycle:
		c.Addf("nextBoot", "goes with on and cycle only")
	}
	return c.Err()
}

// powerProblem is a controller that refused or did not answer: another server's
// fault (RFC 9110 section 15.6.3), and no secret.
func powerProblem(h *hardware.Hardware, err error) error {
	if p := problem(err); p.Status < http.StatusInternalServerError {
		return err
	}
	return &api.Problem{
		Status: http.StatusBadGateway, Code: api.CodePowerFailed, Detail: "hardware " + h.Meta.Name + ": " + hardware.PlainText(err.Error(), 512),
		Hint: "look at spec.power of the record (deploy/docs/power.md); the machine can be switched by hand meanwhile",
	}
}

// inspect starts the workflow that only boots the worker.
func (s *server) inspect(w http.ResponseWriter, r *http.Request) error {
	if err := options(w, r, "inspect", &struct{}{}); err != nil {
		return err
	}
	h, err := s.acted(r)
	if err != nil {
		return err
	}
	made, err := s.Engine.CreateWorkflow(r.Context(), "", inspectSpec(h))
	if err != nil {
		return err
	}
	return s.workflows.answer(r.Context(), w, http.StatusCreated, made.Meta.Name)
}

// inspectSpec is the workflow that only boots the worker.
func inspectSpec(h *hardware.Hardware) workflow.WorkflowSpec {
	template := "inspect"
	if h.Status.State == hardware.StateProvisioned {
		template = "inspect-restart" // its system goes on afterwards
	}
	return workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: template, Purpose: workflow.PurposeInspect}
}
