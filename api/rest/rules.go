package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func ruleRoutes() []Route {
	routes := []Route{{
		Method: http.MethodPost, Path: "/rules/test", Does: "Say what the rules, and one that is not saved, would make of machines", Role: RoleViewer, Reads: true,
		In: api.TestRules{}, Out: api.RulesTested{}, handle: (*server).testRules,
	}}
	return append(routes, recordRoutes(api.KindRule, true, ruleListing(), func(s *server) *resource[hardware.Rule] { return s.rules })...)
}

func ruleListing() listing[hardware.Rule] {
	return listing[hardware.Rule]{sorts: map[string]func(*hardware.Rule) string{
		"priority": func(r *hardware.Rule) string { return fmt.Sprintf("%08d", r.Spec.Priority+hardware.MaxPriority) },
	}}
}

func ruleResource(d Deps) *resource[hardware.Rule] {
	s := d.Records
	return &resource[hardware.Rule]{
		kind:  api.KindRule,
		meta:  func(r *hardware.Rule) *hardware.Meta { return &r.Meta },
		spec:  func(r *hardware.Rule) any { return r.Spec },
		check: (*hardware.Rule).Validate,
		keep:  keepRule,
		show: func(ctx context.Context, r *hardware.Rule) (any, error) {
			p, err := shownProvision(ctx, s, r.Spec.Provision)
			out := *r
			out.Spec.Provision = p
			return &out, err
		},
		create: func(ctx context.Context, r *hardware.Rule) error {
			if err := checkRule(ctx, s, r); err != nil {
				return err
			}
			return s.CreateRule(ctx, r)
		},
		update: func(ctx context.Context, r *hardware.Rule) error {
			if err := checkRule(ctx, s, r); err != nil {
				return err
			}
			return s.UpdateRule(ctx, r)
		},
		remove: s.DeleteRule, get: s.RuleByName, list: s.ListRules, cursor: s.Cursor,
	}
}

// keepRule fills secret parameters that read hardware.Redacted from old.
func keepRule(v, old *hardware.Rule) (*hardware.Rule, []hardware.FieldError) {
	p := v.Spec.Provision
	if p == nil {
		return v, nil
	}
	var had map[string]any
	if old != nil && old.Spec.Provision != nil && old.Spec.Provision.Template == p.Template {
		had = old.Spec.Provision.Params
	}
	out := *v
	out.Spec.Provision = &hardware.RuleProvision{Template: p.Template, Params: maps.Clone(p.Params)}
	var lost []hardware.FieldError
	for _, name := range slices.Sorted(maps.Keys(p.Params)) {
		if p.Params[name] != hardware.Redacted {
			continue
		}
		kept, ok := had[name]
		if !ok {
			lost = append(lost, hardware.FieldError{Field: "spec.provision.params." + name, Detail: lostSecret})
			continue
		}
		out.Spec.Provision.Params[name] = kept
	}
	return &out, lost
}

// shownProvision is p without its secrets.
func shownProvision(ctx context.Context, s TemplateRecords, p *hardware.RuleProvision) (*hardware.RuleProvision, error) {
	if p == nil {
		return nil, nil
	}
	t, err := s.TemplateByName(ctx, p.Template)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return nil, err
	}
	return &hardware.RuleProvision{Template: p.Template, Params: workflow.RedactedParams(t, p.Params)}, nil
}

// checkRule says what is wrong between the rule and the records that it names.
func checkRule(ctx context.Context, s Records, r *hardware.Rule) error {
	c := hardware.NewChecker(api.KindRule.Word(), r.Meta.Name)
	if name := r.Spec.Match.Subnet; name != "" {
		all, err := s.ListSubnets(ctx)
		if err != nil {
			return err
		}
		c.Add("spec.match.subnet", namedIn(api.KindSubnet, name, all, func(n *hardware.Subnet) string { return n.Meta.Name }))
	}
	if p := r.Spec.Provision; p != nil {
		t, err := s.TemplateByName(ctx, p.Template)
		switch {
		case err == nil:
			t.CheckParams(c, "spec.provision.params", p.Params)
		case !errors.Is(err, workflow.ErrNotFound):
			return err
		default:
			all, err := s.ListTemplates(ctx)
			if err != nil {
				return err
			}
			c.Add("spec.provision.template", namedIn(api.KindTemplate, p.Template, all, func(t *workflow.Template) string { return t.Meta.Name }))
		}
	}
	return c.Err()
}

// namedIn is nil where one of all has the name.
func namedIn[T any](k api.Kind, name string, all []*T, of func(*T) string) error {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = of(v)
	}
	if slices.Contains(names, name) {
		return nil
	}
	hint := fmt.Sprintf("see `rackstrap %s list`", k.Word())
	if near := hardware.Nearest(name, names); len(near) > 0 {
		hint = "did you mean " + near[0] + "?"
	}
	return fmt.Errorf("there is no %s %q (%s)", k.Word(), name, hint)
}

// maxRuled bounds how many machines one test looks at.
const maxRuled = 1000

func (s *server) testRules(w http.ResponseWriter, r *http.Request) error {
	in, err := testOf(w, r)
	if err != nil {
		return err
	}
	rules, err := s.rulesWith(r.Context(), in.Rule)
	if err != nil {
		return err
	}
	machines, err := s.toRule(r.Context(), in)
	if err != nil {
		return err
	}
	out := api.RulesTested{Machines: []api.RuledMachine{}, Left: max(0, len(machines)-maxRuled)}
	at := s.bootedIn(r.Context())
	for _, h := range machines[:min(len(machines), maxRuled)] {
		if err := r.Context().Err(); err != nil {
			return err
		}
		m, err := s.ruled(r.Context(), rules, h, at)
		if err != nil {
			return err
		}
		out.Machines = append(out.Machines, m)
	}
	return writeJSON(w, http.StatusOK, out)
}

// testOf reads what is to be tested; the rule in it may be a whole document.
func testOf(w http.ResponseWriter, r *http.Request) (*api.TestRules, error) {
	in := new(api.TestRules)
	docs, err := documents(w, r)
	if err != nil || len(docs) == 0 {
		return in, err
	}
	var errs []hardware.FieldError
	if n := docs[0].Get("rule"); n != nil && n.Type == document.Map {
		errs = checkHead(n, api.KindRule)
		n.Cut("apiVersion")
		n.Cut("kind")
	}
	if errs = append(errs, document.Decode(docs[0], in)...); len(docs) > 1 || len(errs) > 0 {
		return nil, &hardware.Invalid{Kind: "request", Name: "test", Errors: errs}
	}
	return in, nil
}

// rulesWith are all rules, with one that is not saved in place of its namesake.
func (s *server) rulesWith(ctx context.Context, unsaved *hardware.Rule) ([]*hardware.Rule, error) {
	rules, err := s.Records.ListRules(ctx)
	if err != nil || unsaved == nil {
		return rules, err
	}
	if err := unsaved.Validate(); err != nil {
		return nil, err
	}
	if err := checkRule(ctx, s.Records, unsaved); err != nil {
		return nil, err
	}
	rules = slices.DeleteFunc(rules, func(r *hardware.Rule) bool { return r.Meta.Name == unsaved.Meta.Name })
	return append(rules, unsaved), nil
}

// toRule are the machines that a test is about: those that are named, or all of which
// facts are known, the pending ones first.
func (s *server) toRule(ctx context.Context, in *api.TestRules) ([]*hardware.Hardware, error) {
	selector, err := hardware.ParseSelector(in.Selector)
	if err != nil {
		return nil, badRequest("", "selector: %v", err)
	}
	var out []*hardware.Hardware
	for _, name := range in.Hardware {
		h, err := s.hardware.find(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	if len(in.Hardware) == 0 {
		out = slices.DeleteFunc(s.machines(ctx), func(h *hardware.Hardware) bool { return h.Facts == nil })
		slices.SortStableFunc(out, func(a, b *hardware.Hardware) int { return waiting(b) - waiting(a) })
	}
	return slices.DeleteFunc(out, func(h *hardware.Hardware) bool { return !selector.Matches(h.Meta.Labels) }), nil
}

// waiting is 1 for a machine that is pending.
func waiting(h *hardware.Hardware) int {
	if h.Status.State == hardware.StatePending {
		return 1
	}
	return 0
}

// ruled is what the rules would make of one machine.
func (s *server) ruled(ctx context.Context, rules []*hardware.Rule, h *hardware.Hardware, at func(*hardware.Hardware) string) (api.RuledMachine, error) {
	out := api.RuledMachine{Hardware: h.Meta.Name, State: h.Status.State, Subnet: at(h)}
	out.Verdict = hardware.Judge(rules, h, out.Subnet)
	if out.State == "" {
		out.State = hardware.StateAvailable
	}
	if out.State != hardware.StatePending {
		out.But = append(out.But, fmt.Sprintf("it is %s: rules are applied to machines that are pending, so nothing would happen to it", out.State))
	}
	if c := h.Status.Conflicts; h.Status.Disputed() && out.Verdict.Accept {
		out.But = append(out.But, fmt.Sprintf("it would not be accepted: %s (%s); a person accepts it: rackstrap accept %s", c[0].Kind, c[0].Detail, h.Meta.Name))
	}
	if h.Status.Hold && out.Verdict.Accept {
		out.But = append(out.But, "it would not be accepted: it is on hold; take it off: rackstrap hardware unhold "+h.Meta.Name)
	}
	if out.Verdict.Provision != nil && !out.Verdict.Accept {
		out.But = append(out.But, fmt.Sprintf("nothing accepts it: template %s is started when a person does", out.Verdict.Provision.Template))
	}
	var err error
	out.Verdict.Provision, err = shownProvision(ctx, s.Records, out.Verdict.Provision)
	return out, err
}

// bootedIn says in which Subnet a machine booted last: the one of its boot's address,
// else of its newest lease, else of the address that is reserved for it.
func (s *server) bootedIn(ctx context.Context) func(*hardware.Hardware) string {
	subnets, err := s.Records.ListSubnets(ctx)
	if err != nil {
		return func(*hardware.Hardware) string { return "" }
	}
	leases, _ := s.Records.ListLeases(ctx) // without them less is known
	leased := map[hardware.MAC]hardware.Lease{}
	for _, l := range leases {
		if l.Updated.After(leased[l.MAC].Updated) {
			leased[l.MAC] = l
		}
	}
	return func(h *hardware.Hardware) string {
		if m, err := s.Records.Machine(ctx, h.Meta.UID); err == nil && m.Boot != nil && m.Boot.Client.IsValid() {
			for _, n := range subnets {
				if n.Spec.Prefix.Contains(m.Boot.Client) {
					return n.Meta.Name
				}
			}
		}
		for _, nic := range h.Spec.Interfaces {
			if l, ok := leased[nic.MAC]; ok {
				return l.Subnet
			}
		}
		for _, n := range subnets {
			if _, ok := addressIn(h, n); ok {
				return n.Meta.Name
			}
		}
		return ""
	}
}
