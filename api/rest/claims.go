package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// ClaimRecords keeps claims and gives machines to them.
type ClaimRecords interface {
	// Claim takes a machine that matches within besides what the claim wants; created
	// is false where it was done before. *hardware.ClaimDiffers, *hardware.ClaimEnded,
	// *hardware.NoCandidate.
	Claim(ctx context.Context, c *hardware.Claim, within hardware.Selector) (_ *hardware.Claim, created bool, err error)
	// RefuseClaim makes a claim that has ended, so that its id is refused from now on. It
	// returns the one that exists where there is one.
	RefuseClaim(ctx context.Context, id, owner string) (*hardware.Claim, error)
	ClaimByID(ctx context.Context, id string) (*hardware.Claim, error)
	ListClaims(ctx context.Context) ([]*hardware.Claim, error)
	// ExplainClaim says of all machines that match within what speaks against them.
	ExplainClaim(id string, spec *hardware.ClaimSpec, within hardware.Selector) (*hardware.ClaimAnswer, error)
}

func claimRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/claims", Does: "List every claim, also those that ended in the last 30 days, filtered, sorted and in pages", Role: RoleViewer, Claimer: true, Out: api.List[hardware.Claim]{}, Query: claimListing().params(), handle: (*server).listClaims},
		{Method: http.MethodPost, Path: "/claims", Does: "Claim a machine; the same id again is the same claim", Role: RoleOperator, Claimer: true, In: hardware.Claim{}, Out: hardware.Claim{}, handle: (*server).createClaim},
		{Method: http.MethodPost, Path: "/claims/explain", Does: "Say of each machine why a claim would, or would not, be given it", Role: RoleViewer, Claimer: true, Reads: true, In: api.ExplainClaim{}, Out: api.ClaimExplanation{}, handle: (*server).explainSpec},
		{Method: http.MethodGet, Path: "/claims/{name}", Does: "Read a claim", Role: RoleViewer, Claimer: true, Out: hardware.Claim{}, handle: (*server).getClaim},
		{Method: http.MethodDelete, Path: "/claims/{name}", Does: "Give the machine of a claim back: the claim ends, the machine is wiped", Role: RoleOperator, Claimer: true, Out: api.ClaimReleased{}, handle: (*server).endClaim},
		{Method: http.MethodPost, Path: "/claims/{name}/release", Does: "Give the machine of a claim back, and say what is to become of it: wiped, kept for the next claim of a group, in quarantine", Role: RoleOperator, Claimer: true, In: api.ReleaseClaim{}, Out: api.ClaimReleased{}, handle: (*server).releaseClaim},
		{Method: http.MethodGet, Path: "/claims/{name}/explain", Does: "Say of each machine why a claim was, or would not be, given it", Role: RoleViewer, Claimer: true, Out: api.ClaimExplanation{}, handle: (*server).explainClaim},
		{Method: http.MethodPost, Path: "/hardware/{name}/claim", Does: "Claim this machine", Role: RoleOperator, Claimer: true, In: api.ClaimHardware{}, Out: hardware.Claim{}, handle: (*server).claimHardware},
	}
}

// claimResource is what claims share with the other kinds.
func claimResource(d Deps) *resource[hardware.Claim] {
	return &resource[hardware.Claim]{
		kind: api.KindClaim, readOnly: []string{"status"},
		meta: func(c *hardware.Claim) *hardware.Meta { return &c.Meta },
		spec: func(c *hardware.Claim) any { return c.Spec },
		show: func(_ context.Context, c *hardware.Claim) (any, error) { return c, nil },
		get:  d.Records.ClaimByID, list: d.Records.ListClaims, cursor: d.Records.Cursor,
		sees: func(ctx context.Context, c *hardware.Claim) (bool, error) {
			return CallerFrom(ctx).SeesOwner(c.Spec.Owner), nil
		},
	}
}

func claimListing() listing[hardware.Claim] {
	return listing[hardware.Claim]{
		filters: map[string]func(string) (func(*hardware.Claim) bool, error){
			"active": flag("active", func(c *hardware.Claim) bool { return c.Status.Ended.IsZero() }),
			"hardware": func(v string) (func(*hardware.Claim) bool, error) {
				return func(c *hardware.Claim) bool { return c.Status.Hardware == v }, nil
			},
			"owner": func(v string) (func(*hardware.Claim) bool, error) {
				return func(c *hardware.Claim) bool { return hardware.OwnerHas(v, c.Spec.Owner) }, nil
			},
		},
		sorts: map[string]func(*hardware.Claim) string{
			"hardware": func(c *hardware.Claim) string { return c.Status.Hardware },
			"owner":    func(c *hardware.Claim) string { return c.Spec.Owner },
		},
	}
}

// within is what limits the machines that the caller may claim.
func (c Caller) within() hardware.Selector {
	if c.Limited() {
		return c.Selector
	}
	return hardware.Selector{}
}

// claimProblem is an error of a claim as HTTP has it; nil for other errors.
func claimProblem(err error) *api.Problem {
	var ended *hardware.ClaimEnded
	var differs *hardware.ClaimDiffers
	var none *hardware.NoCandidate
	switch {
	case errors.As(err, &ended):
		return &api.Problem{Status: http.StatusConflict, Code: api.CodeClaimEnded, Detail: ended.Error(), Hint: "claim with a new id: rackstrap claim create --owner OWNER"}
	case errors.As(err, &differs):
		return &api.Problem{
			Status: http.StatusConflict, Code: api.CodeConflict, Detail: differs.Error(), Hint: "look at it: rackstrap claim get " + differs.ID,
			Errors: []hardware.FieldError{{Field: differs.Field, Detail: "is another in the claim that exists"}},
		}
	case errors.As(err, &none):
		return &api.Problem{Status: http.StatusConflict, Code: api.CodeNoCandidate, Detail: none.Error(), Hint: "see what speaks against each machine: rackstrap claim explain", Against: none.Against}
	}
	return nil
}

func (s *server) createClaim(w http.ResponseWriter, r *http.Request) error {
	n, err := document1(w, r)
	if err != nil {
		return err
	}
	c, err := s.claims.decode(n, "")
	if err != nil {
		return err
	}
	return s.claim(w, r, c)
}

func (s *server) claimHardware(w http.ResponseWriter, r *http.Request) error {
	var in api.ClaimHardware
	if err := options(w, r, "claim", &in); err != nil {
		return err
	}
	h, err := s.hardware.find(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	return s.claim(w, r, &hardware.Claim{
		Meta: hardware.Meta{Name: in.Claim, Labels: in.Labels},
		Spec: hardware.ClaimSpec{Owner: in.Owner, Hardware: h.Meta.Name},
	})
}

// claim takes a machine: 201, or 200 where the claim exists.
func (s *server) claim(w http.ResponseWriter, r *http.Request, c *hardware.Claim) error {
	if err := c.Validate(); err != nil {
		return err
	}
	caller := CallerFrom(r.Context())
	if err := caller.MayClaim(c.Spec.Owner); err != nil {
		return err
	}
	if c.Spec.Reuse != "" {
		if err := caller.mayReuse("spec.reuse", c.Spec.Reuse); err != nil {
			return err
		}
	}
	got, created, err := s.Records.Claim(r.Context(), c, caller.within())
	var none *hardware.NoCandidate
	if errors.As(err, &none) {
		p := claimProblem(err)
		p.Hint += " " + api.ClaimFlags(&c.Spec)
		return p
	}
	if errors.Is(err, workflow.ErrNotFound) {
		_, err = s.hardware.find(r.Context(), c.Spec.Hardware) // which names those that are like it
		if err == nil {
			err = notFound(api.KindHardware, c.Spec.Hardware, nil)
		}
		return err
	}
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	w.Header().Set("Location", api.Base+"/claims/"+got.Meta.Name)
	return s.showClaim(w, r, status, got)
}

func (s *server) showClaim(w http.ResponseWriter, r *http.Request, status int, c *hardware.Claim) error {
	raw, err := s.claims.marshal(r.Context(), c)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, c.Meta.Revision))
	return writeJSON(w, status, raw)
}

func (s *server) listClaims(w http.ResponseWriter, r *http.Request) error {
	return s.claims.serveList(s, claimListing(), w, r)
}

func (s *server) getClaim(w http.ResponseWriter, r *http.Request) error {
	return s.claims.serveGet(s, w, r)
}

// endClaim is releaseClaim without a word.
func (s *server) endClaim(w http.ResponseWriter, r *http.Request) error {
	return s.giveBack(w, r, api.ReleaseClaim{})
}

func (s *server) releaseClaim(w http.ResponseWriter, r *http.Request) error {
	var in api.ReleaseClaim
	if err := options(w, r, "release", &in); err != nil {
		return err
	}
	if err := checkRelease(in); err != nil {
		return err
	}
	return s.giveBack(w, r, in)
}

// maxUnhealthy bounds the words of an owner about its machine, in bytes.
const maxUnhealthy = 512

func checkRelease(in api.ReleaseClaim) error {
	c := hardware.NewChecker("request", "release")
	if len(in.Unhealthy) > maxUnhealthy {
		c.Addf("unhealthy", "has %d bytes, the limit is %d (say it shorter)", len(in.Unhealthy), maxUnhealthy)
	}
	if len(in.Reason) > maxUnhealthy {
		c.Addf("reason", "has %d bytes, the limit is %d (say it shorter)", len(in.Reason), maxUnhealthy)
	}
	if in.Unhealthy != "" && in.Reserve != nil {
		c.Addf("reserve", "goes with no unhealthy machine: it is in quarantine until a human accepts it (leave out one of the two)")
	}
	if err := c.Err(); err != nil || in.Reserve == nil {
		return err
	}
	return in.Reserve.Validate()
}

// mayReuse says why the caller may not name the group, or nil: what a machine that is
// kept for it has on its disks is the group's.
func (c Caller) mayReuse(field, group string) error {
	if !c.Limited() || hardware.OwnerHas(c.OwnerPrefix, group) {
		return nil
	}
	return forbidden(
		fmt.Sprintf("use a group that begins with %s", c.OwnerPrefix),
		"%s: the token %q speaks for owners within %q, and %q is none", field, c.Name, c.OwnerPrefix, hardware.PlainText(group, 80),
	)
}

// giveBack releases the machine of a claim. Asked again it says the same.
func (s *server) giveBack(w http.ResponseWriter, r *http.Request, in api.ReleaseClaim) error {
	caller := CallerFrom(r.Context())
	c, err := s.claims.find(r.Context(), chi.URLParam(r, "name"))
	var p *api.Problem
	if errors.As(err, &p) && p.Code == api.CodeNotFound && in.Owner != "" {
		if err := caller.MayClaim(in.Owner); err != nil {
			return err
		}
		c, err = s.Records.RefuseClaim(r.Context(), chi.URLParam(r, "name"), in.Owner)
		if err == nil && !caller.SeesOwner(c.Spec.Owner) {
			return p // another's
		}
	}
	if err != nil {
		return err
	}
	if err := caller.MayClaim(c.Spec.Owner); err != nil {
		return err
	}
	if in.Reserve != nil {
		if err := caller.mayReuse("reserve.for", in.Reserve.For); err != nil {
			return err
		}
	}
	out := api.ClaimReleased{Claim: *c}
	if c.Status.Ended.IsZero() {
		why := "claim " + c.Meta.Name + " of " + c.Spec.Owner + " ended"
		if in.Reason != "" {
			why += ": " + in.Reason
		}
		_, _, err = s.Engine.Release(r.Context(), c.Status.UID, workflow.ReleaseInput{Claim: c.Meta.Name, Why: why, Reserve: in.Reserve, Unhealthy: in.Unhealthy})
		now, readErr := s.Records.ClaimByID(r.Context(), c.Meta.Name)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if now.Status.Ended.IsZero() {
			if err == nil {
				err = fmt.Errorf("claim %q: its machine was released, and it did not end", c.Meta.Name)
			}
			return err
		}
		out.Claim = *now // err: somebody else ended it meanwhile
	}
	if out.Workflow, err = s.wipeOf(r.Context(), &out.Claim); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}

// wipeOf is the name of the workflow that wipes, or wiped, the machine of a claim that
// ended; empty where there was none yet, or the machine is another's since.
func (s *server) wipeOf(ctx context.Context, c *hardware.Claim) (string, error) {
	h, err := s.Records.HardwareByName(ctx, c.Status.Hardware)
	if errors.Is(err, workflow.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	st := h.Status.Stopping
	if h.Meta.UID != c.Status.UID || st == nil || st.Claim != c.Meta.Name || h.Status.Workflow == "" {
		return "", nil
	}
	made, err := s.Records.Workflow(ctx, h.Status.Workflow)
	if errors.Is(err, workflow.ErrNotFound) {
		return "", nil
	}
	if err != nil || made.Spec.Purpose != workflow.PurposeRelease || made.Meta.Created.Before(st.Since) {
		return "", err
	}
	return made.Meta.Name, nil
}

func (s *server) explainSpec(w http.ResponseWriter, r *http.Request) error {
	var in api.ExplainClaim
	if err := options(w, r, "explain", &in); err != nil {
		return err
	}
	caller := CallerFrom(r.Context())
	if in.Spec.Owner == "" {
		in.Spec.Owner = "anybody" // who asks plays no part in what fits
	} else if caller.Limited() {
		if err := caller.MayClaim(in.Spec.Owner); err != nil {
			return err
		}
	}
	if in.Spec.Reuse != "" {
		if err := caller.mayReuse("spec.reuse", in.Spec.Reuse); err != nil {
			return err
		}
	}
	return s.explain(w, r, "", &in.Spec, time.Time{})
}

func (s *server) explainClaim(w http.ResponseWriter, r *http.Request) error {
	c, err := s.claims.find(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	return s.explain(w, r, c.Meta.Name, &c.Spec, c.Status.Ended)
}

func (s *server) explain(w http.ResponseWriter, r *http.Request, id string, spec *hardware.ClaimSpec, ended time.Time) error {
	a, err := s.Records.ExplainClaim(id, spec, CallerFrom(r.Context()).within())
	if err != nil {
		return err
	}
	out := api.ClaimExplanation{Claim: id, Picked: a.Picked, Candidates: a.Candidates}
	fits := 0
	for _, c := range a.Candidates {
		if c.Fits {
			fits++
		}
	}
	none := &hardware.NoCandidate{Machines: len(a.Candidates), Against: a.Against}
	switch {
	case !ended.IsZero():
		out.Picked = ""
		out.Summary = "the claim ended at " + ended.UTC().Format(time.RFC3339) + "; a new one with this spec would find " + countFits(fits, len(a.Candidates))
	case id != "":
		out.Summary = fmt.Sprintf("the claim has %s; %s", a.Picked, countFits(fits, len(a.Candidates)))
	case fits == 0:
		out.Summary = none.Error()
	default:
		out.Summary = fmt.Sprintf("%s; %s would be taken", countFits(fits, len(a.Candidates)), a.Picked)
	}
	if fits > 0 && len(a.Against) > 0 {
		out.Summary += "; the others: " + none.Counts()
	}
	return writeJSON(w, http.StatusOK, out)
}

func countFits(fits, all int) string { return fmt.Sprintf("%d of %d machines fit", fits, all) }
