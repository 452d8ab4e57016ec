package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func templateRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/action-kinds", Does: "List what an action can do, with its options, and the variables that every template has", Role: RoleViewer, Claimer: true, Out: api.ActionKinds{}, handle: (*server).actionKinds},
		{Method: http.MethodGet, Path: "/template-summaries", Does: "List every template in a row of its own, with what was made of it", Role: RoleViewer, Claimer: true, Out: api.List[api.TemplateSummary]{}, handle: (*server).templateSummaries},
		// An operator's: a template that is not saved can be written so that a secret of the
		// kept one shows by its length or its parts.
		{Method: http.MethodPost, Path: "/templates/render", Does: "Say what a template, also one that is not saved, would do on a machine, and what speaks against it", Role: RoleOperator, Reads: true, In: api.RenderTemplate{}, Out: api.RenderedTemplate{}, handle: (*server).renderTemplate},
	}
}

func (s *server) actionKinds(w http.ResponseWriter, _ *http.Request) error {
	out := api.ActionKinds{APIVersion: api.Version, Kind: "ActionKinds", Variables: workflow.Variables()}
	for _, k := range workflow.Kinds() {
		a := k.About()
		options, err := json.Marshal(optionSchema(k, a.Options))
		if err != nil {
			return err
		}
		out.Items = append(out.Items, api.ActionKind{
			Kind: k, Does: a.Does, Options: options, Timeout: hardware.Duration(a.Timeout), Retries: a.Retries,
			WritesDisk: a.WritesDisk, Destroys: a.Destroys, Last: a.Last,
		})
	}
	return writeJSON(w, http.StatusOK, out)
}

// optionSchema is the JSON Schema of a kind's options.
func optionSchema(k workflow.Kind, o workflow.Options) *openapi.Schema {
	out := openapi.Object(reflect.TypeOf(o).Elem(), types())
	for name, p := range out.Properties {
		about := k.OptionAbout(name)
		p.Description, p.Enum = about.Text, about.OneOf
	}
	return out
}

// templateSummaries reads all workflows once: it is asked when somebody looks at the
// list, not when something happens.
func (s *server) templateSummaries(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	all, err := s.templates.all(ctx)
	if err != nil {
		return err
	}
	flows, err := s.workflows.all(ctx)
	if err != nil {
		return err
	}
	rules, err := s.Records.ListRules(ctx)
	if err != nil {
		return err
	}
	if CallerFrom(ctx).Limited() {
		rules = nil // none of a claimer's business
	}
	out := api.List[api.TemplateSummary]{APIVersion: api.Version, Kind: "TemplateSummaryList"}
	for _, t := range all {
		row := s.templateRow(t)
		for _, f := range flows {
			if f.Spec.Template == t.Meta.Name {
				use(&row, f)
			}
		}
		for _, rule := range rules {
			if p := rule.Spec.Provision; p != nil && p.Template == t.Meta.Name {
				row.Rules = append(row.Rules, rule.Meta.Name)
			}
		}
		out.Items = append(out.Items, row)
	}
	slices.SortFunc(out.Items, func(a, b api.TemplateSummary) int { return cmp.Compare(a.Name, b.Name) })
	return writeJSON(w, http.StatusOK, out)
}

// templateRow is what a template says of itself.
func (s *server) templateRow(t *workflow.Template) api.TemplateSummary {
	row := api.TemplateSummary{Name: t.Meta.Name, Description: t.Spec.Description}
	for _, p := range t.Spec.Parameters {
		if p.Default == nil {
			row.Parameters = append(row.Parameters, p.Name)
		} else {
			row.Optional = append(row.Optional, p.Name)
		}
	}
	for _, a := range t.Spec.Actions {
		row.Kinds = append(row.Kinds, a.Kind)
	}
	if s.BuiltIn != nil {
		row.BuiltIn, row.Edited = s.BuiltIn(t)
	}
	return row
}

// use counts a workflow that was made of the row's template.
func use(row *api.TemplateSummary, w *workflow.Workflow) {
	row.Workflows++
	if row.Last == nil || w.Meta.Created.After(row.Last.Created) {
		row.Last = &api.TemplateUse{Workflow: w.Meta.Name, Hardware: w.Spec.Hardware, Created: w.Meta.Created, State: w.Status.State}
	}
}

// renderTemplate does as if the template were saved and a workflow were made of it, and
// throws both away. What is wrong with the template or its parameters is a problem of
// the request; what keeps this machine from it now is said beside the steps.
func (s *server) renderTemplate(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	in, t, err := s.readRender(w, r)
	if err != nil {
		return err
	}
	h, err := s.hardware.find(ctx, in.Hardware)
	if err != nil {
		return err
	}
	actions, err := workflow.Render(t, in.Params, h)
	if err != nil {
		return err
	}
	out := api.RenderedTemplate{Template: t.Meta.Name, Hardware: h.Meta.Name}
	for _, a := range actions {
		about := a.Kind.About()
		out.WritesDisk, out.Destroys = out.WritesDisk || about.WritesDisk, out.Destroys || about.Destroys
	}
	spec := workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: t.Meta.Name, Params: in.Params, Reinstall: in.Reinstall, Claim: in.Claim}
	if out.Refused, err = s.wouldRefuse(ctx, t, spec); err != nil {
		return err
	}
	whole := workflow.Workflow{Spec: spec, Status: workflow.Status{Actions: actions}}
	out.Actions = whole.Redacted(t).Status.Actions
	return writeJSON(w, http.StatusOK, out)
}

// readRender reads the body, and the template that it means, checked.
func (s *server) readRender(w http.ResponseWriter, r *http.Request) (in api.RenderTemplate, t *workflow.Template, err error) {
	n, err := document1(w, r)
	if err != nil {
		return in, nil, err
	}
	given := n.Get("template")
	if given != nil {
		n.Cut("template")
	}
	if errs := document.Decode(n, &in); len(errs) > 0 {
		return in, nil, &hardware.Invalid{Kind: "request", Name: "render", Errors: errs}
	}
	if given == nil && in.Name == "" {
		return in, nil, &hardware.Invalid{Kind: "request", Name: "render", Errors: []hardware.FieldError{{Field: "template", Detail: "is missing (give one, or the name of a kept one as name)"}}}
	}
	if given == nil {
		t, err = s.templates.find(r.Context(), in.Name)
		return in, t, err
	}
	if t, err = s.templates.decode(given, ""); err != nil {
		return in, nil, err
	}
	if err = s.templates.check(t); err != nil {
		return in, nil, err
	}
	old, err := s.Records.TemplateByName(r.Context(), t.Meta.Name)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return in, nil, err
	}
	kept, lost := s.templates.keep(t, old)
	if len(lost) > 0 {
		return in, nil, s.templates.invalid(t.Meta.Name, lost)
	}
	return in, kept, nil
}

// wouldRefuse is why a workflow of the template would not be started now, nil if it
// would be.
func (s *server) wouldRefuse(ctx context.Context, t *workflow.Template, spec workflow.WorkflowSpec) (*api.Problem, error) {
	dry, err := s.asDry(ctx)
	if err != nil {
		return nil, err
	}
	old, err := dry.Records.TemplateByName(ctx, t.Meta.Name)
	v := *t
	switch {
	case errors.Is(err, workflow.ErrNotFound):
		err = dry.Records.CreateTemplate(ctx, &v)
	case err == nil:
		v.Meta.UID, v.Meta.Revision, v.Meta.Created = old.Meta.UID, old.Meta.Revision, old.Meta.Created
		err = dry.Records.UpdateTemplate(ctx, &v)
	}
	if err == nil {
		_, err = dry.Engine.CreateWorkflow(ctx, "", spec)
	}
	if err == nil {
		return nil, nil
	}
	p := *problem(err)
	if p.Status >= http.StatusInternalServerError {
		return nil, err
	}
	p.Title = http.StatusText(p.Status)
	return &p, nil
}
