package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// planned is one document of apply.
type planned struct {
	result api.Applied
	err    error
	// write creates or changes the record.
	write func(context.Context) (api.Outcome, []api.Change, error)
}

// apply writes every document of the body, after all were found right by
// themselves. What others name is written first; results are in the order of the
// documents. With any error the answer is a problem with all results in it.
func (s *server) apply(w http.ResponseWriter, r *http.Request) error {
	s, err := s.forRequest(r)
	if err != nil {
		return err
	}
	docs, err := documents(w, r)
	if err != nil {
		return err
	}
	docs = flatten(docs)
	if len(docs) == 0 {
		return badRequest("separate documents by ---", "the body has no document")
	}
	plan := make([]*planned, len(docs))
	wrong := 0
	for i, n := range docs {
		plan[i] = s.plan(i, n)
		if plan[i].err != nil {
			wrong++
		}
	}
	wrong += twice(plan)
	through(r.Context()) // writing may take long
	defer func() { toldOf(r.Context()).part = doneInPart(plan, "%d of %d documents") }()

	if wrong > 0 && !s.dry { // a dry run says of the others what would be done
		for _, p := range plan {
			if p.err == nil {
				p.result.Result = api.OutcomeSkipped
			}
		}
		return applyProblem(plan, api.CodeInvalid, fmt.Sprintf("%d of %d documents are wrong, nothing was written", wrong, len(plan)))
	}
	for _, k := range api.Kinds() {
		for _, p := range plan {
			if p.result.Kind != k || p.err != nil {
				continue
			}
			if err := r.Context().Err(); err != nil {
				return err
			}
			p.result.Result, p.result.Changes, p.err = p.write(r.Context())
			if p.err != nil {
				wrong++
				s.logInternal(r, p.err)
			}
		}
	}
	switch {
	case wrong > 0 && s.dry:
		return applyProblem(plan, api.CodeInvalid, fmt.Sprintf("%d of %d documents are wrong or cannot be written", wrong, len(plan)))
	case wrong > 0:
		return applyProblem(plan, api.CodePartiallyApplied, fmt.Sprintf("%d of %d documents were not written", wrong, len(plan)))
	}
	return writeJSON(w, http.StatusOK, api.ApplyResult{Results: results(plan), DryRun: s.dry})
}

// flatten replaces lists (kind: …List) by their items.
func flatten(docs []*document.Node) []*document.Node {
	var out []*document.Node
	for _, n := range docs {
		if k, items := n.Get("kind"), n.Get("items"); k != nil && strings.HasSuffix(k.Value, "List") && items != nil && items.Type == document.List {
			out = append(out, items.Items...)
			continue
		}
		out = append(out, n)
	}
	return out
}

// plan decodes and checks one document.
func (s *server) plan(i int, n *document.Node) *planned {
	p := &planned{result: api.Applied{Index: i, Line: n.Line}}
	kind := n.Get("kind")
	if kind == nil || !api.Kind(kind.Value).Known() {
		detail := "is missing"
		var known []string
		for _, k := range api.Kinds() {
			known = append(known, string(k))
		}
		hint := "one of " + strings.Join(known, ", ")
		if kind != nil {
			detail = fmt.Sprintf("%.60q is not known", kind.Value)
			if near := hardware.Nearest(kind.Value, known); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
		}
		p.err = &hardware.Invalid{Kind: "document", Name: fmt.Sprint(i), Errors: []hardware.FieldError{{Field: "kind", Detail: detail + " (" + hint + ")"}}}
		return p
	}
	p.result.Kind = api.Kind(kind.Value)
	if m := n.Get("metadata"); m != nil && m.Get("name") != nil {
		p.result.Name = hardware.PlainText(m.Get("name").Value, 80)
	}
	switch p.result.Kind {
	case api.KindHardware:
		planRecord(s, p, s.hardware, n)
	case api.KindSubnet:
		planRecord(s, p, s.subnets, n)
	case api.KindTemplate:
		planRecord(s, p, s.templates, n)
	case api.KindRule:
		planRecord(s, p, s.rules, n)
	case api.KindImage:
		planRecord(s, p, s.images, n)
	case api.KindWorkflow:
		planRecord(s, p, s.workflows, n)
	}
	return p
}

func planRecord[T any](s *server, p *planned, rs *resource[T], n *document.Node) {
	v, err := rs.decode(n, "")
	if err == nil {
		err = rs.check(v)
	}
	if err == nil && rs.meta(v).Name == "" {
		err = rs.invalid("", []hardware.FieldError{{Field: "metadata.name", Detail: "is missing (apply finds a record by its name)"}})
	}
	if err != nil {
		p.err = err
		return
	}
	p.write = func(ctx context.Context) (api.Outcome, []api.Change, error) { return put(ctx, s, rs, v) }
}

// put creates the record or writes over the one of that name. One that somebody else
// changes meanwhile is looked at again.
func put[T any](ctx context.Context, s *server, rs *resource[T], v *T) (api.Outcome, []api.Change, error) {
	var had uint64
	for range overtakenTries {
		old, err := rs.get(ctx, rs.meta(v).Name)
		if errors.Is(err, workflow.ErrNotFound) {
			err = rs.add(ctx, v)
			if errors.Is(err, workflow.ErrExists) {
				continue
			}
			return outcome(api.OutcomeCreated, nil, err)
		}
		if err != nil {
			return api.OutcomeError, nil, err
		}
		written, changed, err := rs.replace(ctx, v, old, 0)
		had = rs.meta(old).Revision
		switch {
		case errors.Is(err, workflow.ErrConflict):
			continue
		case err != nil || !changed:
			return outcome(api.OutcomeUnchanged, nil, err)
		case !s.dry:
			return api.OutcomeChanged, nil, nil
		}
		changes, err := rs.changes(ctx, old, written)
		return outcome(api.OutcomeChanged, changes, err)
	}
	return api.OutcomeError, nil, rs.overtaken(ctx, workflow.ErrConflict, rs.meta(v).Name, had, 0)
}

func outcome(o api.Outcome, changes []api.Change, err error) (api.Outcome, []api.Change, error) {
	if err != nil {
		return api.OutcomeError, nil, err
	}
	return o, changes, nil
}

// twice marks documents that have the kind and name of an earlier one.
func twice(plan []*planned) int {
	seen := map[string]int{}
	n := 0
	for i, p := range plan {
		if p.err != nil {
			continue
		}
		key := string(p.result.Kind) + "/" + p.result.Name
		if j, ok := seen[key]; ok {
			p.err = &hardware.Invalid{Kind: p.result.Kind.Word(), Name: p.result.Name, Errors: []hardware.FieldError{
				{Field: "metadata.name", Detail: fmt.Sprintf("is also in the document at line %d", plan[j].result.Line)},
			}}
			n++
			continue
		}
		seen[key] = i
	}
	return n
}

func results(plan []*planned) []api.Applied {
	out := make([]api.Applied, len(plan))
	for i, p := range plan {
		out[i] = p.result
		if p.err == nil {
			continue
		}
		pr := problem(p.err)
		out[i].Result, out[i].Detail, out[i].Errors, out[i].Hint = api.OutcomeError, pr.Detail, pr.Errors, pr.Hint
	}
	return out
}

// applyProblem has the status of the first error; several statuses cannot be said.
func applyProblem(plan []*planned, code api.Code, detail string) error {
	i := slices.IndexFunc(plan, func(p *planned) bool { return p.err != nil })
	return &api.Problem{Status: problem(plan[i].err).Status, Code: code, Detail: detail, Results: results(plan), Hint: "correct these, then apply it all again: what is as it should be stays unchanged"}
}

// logInternal logs what the answer does not tell.
func (s *server) logInternal(r *http.Request, err error) {
	if problem(err).Status >= http.StatusInternalServerError {
		s.Log.Error("api request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
}
