package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// BootRecords reads what the engine keeps of a machine, its boot among it.
type BootRecords interface {
	// Machine is workflow.ErrNotFound where there is no such Hardware.
	Machine(ctx context.Context, uid string) (*workflow.Machine, error)
}

// Workers says which workers are there.
type Workers interface {
	Connected(uid string) bool
	// WorkerLeft is when the connection of the machine's last worker ended.
	WorkerLeft(uid string) time.Time
}

// explainEvents is how many of a machine's newest events are looked at: those of the
// newest boot, and what came after it.
const explainEvents = 200

func explainRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/hardware/{name}/explain", Does: "Say why a machine is where it is, and what to type", Role: RoleViewer, Claimer: true, Out: api.Explanation{}, handle: (*server).explainMachine},
		{Method: http.MethodGet, Path: "/hardware/{name}/validate", Does: "Say what is missing before a machine can be installed", Role: RoleViewer, Claimer: true, Out: api.Validation{}, Query: []string{"image", "template", "format", "disk", "reinstall"}, handle: (*server).validate},
		{Method: http.MethodGet, Path: "/issues", Does: "List what keeps machines from getting on, the worst first", Role: RoleViewer, Claimer: true, Out: api.List[api.MachineIssue]{}, Query: []string{"kind", "severity", "selector"}, handle: (*server).issues},
	}
}

func (s *server) explainMachine(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	h, err := s.hardware.find(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	if c := CallerFrom(r.Context()); !c.Follows(h) { // it tells what the timeline does
		return forbidden("", "%q is held by a claim of another owner, and the token %q follows its own", h.Meta.Name, c.Name)
	}
	snap, err := s.snapshot(r.Context(), h)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, workflow.Explain(snap))
}

// snapshot reads everything that is known of a machine.
func (s *server) snapshot(ctx context.Context, h *hardware.Hardware) (workflow.Snapshot, error) {
	uid := h.Meta.UID
	out := workflow.Snapshot{
		Now: s.Now(), Hardware: h, WorkerConnected: s.Engine.Connected(uid), WorkerLeft: s.Engine.WorkerLeft(uid),
	}
	m, err := s.Records.Machine(ctx, uid)
	if err != nil {
		return out, err
	}
	out.Boot = m.Boot
	if name := h.Status.Workflow; name != "" {
		wf, err := s.Records.Workflow(ctx, name)
		switch {
		case errors.Is(err, workflow.ErrNotFound): // it was deleted
		case err != nil:
			return out, err
		case wf.Status.HardwareUID == uid:
			out.Workflow = wf
		}
		if p, ok := s.Engine.Progress(name); ok {
			out.Progress = &p
		}
	}
	if out.Subnets, err = s.Records.ListSubnets(ctx); err != nil {
		return out, err
	}
	events, err := s.Records.Events(ctx, workflow.EventQuery{Hardware: uid, Limit: explainEvents})
	if err != nil {
		return out, err
	}
	for _, e := range events {
		if m.Boot == nil || e.Boot >= m.Boot.ID || (e.Boot == "" && !e.Last.Before(m.Boot.Started)) {
			out.Events = append(out.Events, e)
		}
	}
	return out, nil
}

// machines are those that the caller sees, shared and not to be changed.
func (s *server) machines(ctx context.Context) []*hardware.Hardware {
	c := CallerFrom(ctx)
	return slices.DeleteFunc(slices.Clone(s.Records.HardwareIndex()), func(h *hardware.Hardware) bool { return !c.Sees(h) })
}

func (s *server) issues(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := queryKnown(q, "kind", "severity", "selector"); err != nil {
		return err
	}
	kind, severity := hardware.IssueKind(q.Get("kind")), hardware.Severity(q.Get("severity"))
	if kind != "" && !slices.Contains(hardware.IssueKinds(), kind) {
		return badRequest("all kinds: rackstrap issue explain", "kind=%.40q is no kind of issue", kind)
	}
	if severity != "" && !slices.Contains(severities(), severity) {
		return badRequest("error, warning or info", "severity=%.40q is not known", severity)
	}
	selector, err := hardware.ParseSelector(q.Get("selector"))
	if err != nil {
		return badRequest("", "selector: %v", err)
	}
	out := api.List[api.MachineIssue]{APIVersion: api.Version, Kind: "IssueList", Items: []api.MachineIssue{}}
	for _, h := range s.machines(r.Context()) {
		if !CallerFrom(r.Context()).Follows(h) || !selector.Matches(h.Meta.Labels) {
			continue
		}
		for _, i := range h.Status.Issues {
			if (kind == "" || i.Kind == kind) && (severity == "" || i.Severity == severity) {
				out.Items = append(out.Items, api.MachineIssue{Hardware: h.Meta.Name, State: h.Status.State, Title: i.Kind.Title(), Issue: i})
			}
		}
	}
	slices.SortStableFunc(out.Items, func(a, b api.MachineIssue) int {
		return cmp.Or(
			cmp.Compare(slices.Index(severities(), a.Severity), slices.Index(severities(), b.Severity)),
			a.Since.Compare(b.Since), cmp.Compare(a.Hardware, b.Hardware), cmp.Compare(a.Kind, b.Kind),
		)
	})
	return writeJSON(w, http.StatusOK, out)
}

// severities are in order, the worst first.
func severities() []hardware.Severity {
	return []hardware.Severity{hardware.SeverityError, hardware.SeverityWarning, hardware.SeverityInfo}
}
