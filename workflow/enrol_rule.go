package workflow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/hardware"
)

// byRule is who asked, where a rule did.
func byRule(name string) string { return "rule " + name }

// judge applies the rules to a pending machine that has just reported itself: it puts
// their labels into h and, where one accepts it and nothing speaks against its identity,
// makes it available in mc. It returns the events; none where nothing became of it that
// was not so before. may says whether a rule may accept one more machine; it is asked
// only where one does.
func (e *Engine) judge(h *hardware.Hardware, mc *Machine, boot, subnet string, may func() bool) []Event {
	if e.c.Rules == nil || mc.Status.State != hardware.StatePending {
		return nil
	}
	rules := e.c.Rules()
	v := hardware.Judge(rules, h, subnet)
	var done []string
	if labels := maps.Clone(v.Labels); len(labels) > 0 {
		maps.Copy(labels, h.Meta.Labels) // one that it has already stays
		h.Meta.Labels = labels
		for _, k := range slices.Sorted(maps.Keys(v.Labels)) {
			done = append(done, "label "+k+"="+labels[k])
		}
	}
	by := ""
	var out []Event
	switch {
	case v.Accept && mc.Status.Disputed():
		done = append(done, "not accepted: its identity is in doubt")
	case v.Accept && !mc.Status.Hold && !may():
		out = append(out, e.event(h, boot, hardware.ReasonRuleLimit, fmt.Sprintf("%d at once and as many an hour; it is accepted later, or now: %s", AcceptBurst, typeAccept(h.Meta.Name))))
	case v.Accept && !mc.Status.Hold:
		by = firstRule(rules, &v, func(s *hardware.RuleSpec) bool { return s.Accept })
		mc.Status.State, mc.Status.Since, mc.Status.Failures = hardware.StateAvailable, e.c.Now(), 0
		done = append(done, "accepted by rule "+by)
		mc.Status.Rule = firstRule(rules, &v, provisions)
	}
	if len(done) > 0 {
		detail := strings.Join(v.Rules, ", ") + ": " + strings.Join(done, "; ")
		out = append(out, e.event(h, boot, hardware.ReasonRuleApplied, hardware.PlainText(detail, 512)))
	}
	if by != "" {
		out = append(out, e.event(h, boot, hardware.ReasonStateChanged, fmt.Sprintf("%s, was %s", mc.Status.State, hardware.StatePending)))
	}
	for i := range out {
		if by == "" {
			by = v.Rules[0]
		}
		out[i].By = byRule(by)
	}
	return out
}

// mayAccept takes one of the acceptances that rules have.
func (e *Engine) mayAccept() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.accepts.take(e.c.Now(), acceptRate, AcceptBurst)
}

// firstRule is the name of the first rule of the verdict that says what is asked for;
// empty where none does.
func firstRule(rules []*hardware.Rule, v *hardware.Verdict, what func(*hardware.RuleSpec) bool) string {
	for _, name := range v.Rules {
		if i := slices.IndexFunc(rules, func(r *hardware.Rule) bool { return r.Meta.Name == name }); i >= 0 && what(&rules[i].Spec) {
			return name
		}
	}
	return ""
}

func provisions(s *hardware.RuleSpec) bool { return s.Provision != nil }

// provisionedBy is the rule whose workflow is started on a discovered machine that a
// human accepts; empty where there is none, or where it was in doubt which machine it is.
func (e *Engine) provisionedBy(h *hardware.Hardware, mc *Machine) string {
	if e.c.Rules == nil || h.Status.Discovered.IsZero() || h.Status.Disputed() {
		return ""
	}
	rules := e.c.Rules()
	v := hardware.Judge(rules, h, e.bootedIn(mc))
	return firstRule(rules, &v, provisions)
}

// bootedIn is the name of the Subnet that a machine booted in; empty where it is not known.
func (e *Engine) bootedIn(mc *Machine) string {
	if mc.Boot == nil {
		return ""
	}
	if s := e.subnetOf(mc.Boot.Client); s != nil {
		return s.Meta.Name
	}
	return ""
}

// reconsider applies the rules to a pending machine that has a record, after it reported
// itself again: it may have been changed, and so may the rules. The caller holds m.mu.
func (e *Engine) reconsider(ctx context.Context, m *machine) error {
	was := m.limited
	m.limited = false
	may := sync.OnceValue(func() bool { m.limited = !e.mayAccept(); return !m.limited })
	for {
		h, mc, err := e.load(ctx, m.uid)
		if err != nil || mc.Status.State != hardware.StatePending || mc.Boot == nil {
			return err
		}
		ch := &Change{Machine: mc}
		had := len(h.Meta.Labels)
		if ch.Events = e.judge(h, mc, mc.Boot.ID, e.bootedIn(mc), may); len(ch.Events) == 0 {
			return nil
		}
		if len(h.Meta.Labels) != had {
			ch.Hardware = h
		} else if mc.Status.State == hardware.StatePending && (was || !m.limited) {
			return nil // the same as before: nothing new to tell
		}
		err = e.c.Store.Commit(ctx, ch)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err == nil && mc.Status.State != hardware.StatePending {
			e.restart(m, "this machine was accepted")
		}
		return err
	}
}

// restart sends a worker that may not be given an action, of a machine that was not
// accepted before or had nothing to do, into its next boot. The caller holds m.mu.
func (e *Engine) restart(m *machine, why string) {
	if m.session != nil && m.session.scope != hardware.ScopeWork {
		m.session.finish(&Finish{What: FinishReboot, Reason: why})
	}
}

// startByRule creates the workflow of the rule that accepted a machine, once: the name
// of the rule is written with the acceptance and taken away with the workflow. What
// cannot be started is not tried again; an error of the store is.
func (e *Engine) startByRule(ctx context.Context, uid string) {
	mc, err := e.c.Store.Machine(ctx, uid)
	if err != nil || mc.Status.Rule == "" {
		return
	}
	rule := mc.Status.Rule
	ctx = WithBy(ctx, byRule(rule))
	h, err := e.c.Store.Hardware(ctx, uid)
	if err != nil {
		return
	}
	spec, err := e.ruleWorkflow(ctx, rule, h)
	if err == nil {
		_, err = e.CreateWorkflow(ctx, "", spec)
	}
	var invalid *hardware.Invalid
	switch {
	case err == nil:
		return
	case errors.As(err, &invalid), errors.Is(err, ErrInUse), errors.Is(err, ErrNotFound):
	default:
		e.c.Log.Error("workflow of a rule not created", "rule", rule, "hardware", h.Meta.Name, "err", err)
		return
	}
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	cerr := e.change(ctx, uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		if mc.Status.Rule != rule {
			return nil, nil
		}
		mc.Status.Rule = ""
		return e.told(h, hardware.ReasonRuleFailed, "rule "+rule+": "+err.Error()), nil
	})
	if cerr != nil {
		e.c.Log.Error("rule not ended", "rule", rule, "hardware", h.Meta.Name, "err", cerr)
	}
}

// ruleWorkflow is the workflow that a rule starts on a machine.
func (e *Engine) ruleWorkflow(ctx context.Context, rule string, h *hardware.Hardware) (WorkflowSpec, error) {
	rules := e.c.Rules()
	i := slices.IndexFunc(rules, func(r *hardware.Rule) bool { return r.Meta.Name == rule })
	if i < 0 || rules[i].Spec.Provision == nil {
		return WorkflowSpec{}, fmt.Errorf("it has no workflow any more: %w", ErrNotFound)
	}
	p := rules[i].Spec.Provision
	spec := WorkflowSpec{Hardware: h.Meta.Name, Template: p.Template, Params: maps.Clone(p.Params)}
	if t, err := e.c.Templates(ctx, p.Template); err == nil && slices.ContainsFunc(t.Spec.Actions, func(a ActionSpec) bool { return a.Kind == KindImageWrite }) {
		spec.Purpose = PurposeInstall
	}
	return spec, nil
}
