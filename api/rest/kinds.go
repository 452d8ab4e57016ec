package rest

import (
	"context"
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const lostSecret = "is " + hardware.Redacted + ", and there is no kept value to put there (write the value)"

func hardwareResource(d Deps) *resource[hardware.Hardware] {
	s := d.Records
	return &resource[hardware.Hardware]{
		kind: api.KindHardware, readOnly: []string{"status", "facts"},
		meta:  func(h *hardware.Hardware) *hardware.Meta { return &h.Meta },
		spec:  func(h *hardware.Hardware) any { return h.Spec },
		check: (*hardware.Hardware).Validate,
		keep: func(v, old *hardware.Hardware) (*hardware.Hardware, []hardware.FieldError) {
			out := hardware.Unredact(v, old)
			var lost []hardware.FieldError
			if out.Spec.UserData == hardware.Redacted {
				lost = append(lost, hardware.FieldError{Field: "spec.userData", Detail: lostSecret})
			}
			if p := out.Spec.Power; p != nil && p.Secret == hardware.Redacted {
				lost = append(lost, hardware.FieldError{Field: "spec.power.secret", Detail: lostSecret})
			}
			if lost == nil && hardware.HasRedacted(out) {
				lost = []hardware.FieldError{{Field: "spec", Detail: lostSecret}}
			}
			return out, lost
		},
		show:   func(_ context.Context, h *hardware.Hardware) (any, error) { return h.Redacted(), nil },
		create: s.CreateHardware, update: s.UpdateHardware, remove: removeWiped(s), get: s.HardwareByName,
		list:   func(context.Context) ([]*hardware.Hardware, error) { return s.HardwareIndex(), nil },
		cursor: func(context.Context) (uint64, error) { return s.IndexCursor(), nil },
		force: func(ctx context.Context, h *hardware.Hardware, rev uint64, _ []string) ([]string, error) {
			skipped, err := d.Engine.Drop(ctx, h.Meta.UID, "deleted with force")
			if err != nil {
				return nil, err
			}
			return skipped, s.DeleteHardware(ctx, h.Meta.Name, rev)
		},
		sees: func(ctx context.Context, h *hardware.Hardware) (bool, error) { return CallerFrom(ctx).Sees(h), nil },
	}
}

// removeWiped deletes a machine's record, unless its disks may hold what somebody wrote
// here: registered again it would be available, with that on it.
func removeWiped(s HardwareRecords) func(ctx context.Context, name string, rev uint64) error {
	return func(ctx context.Context, name string, rev uint64) error {
		h, err := s.HardwareByName(ctx, name)
		if err != nil {
			return err
		}
		if workflow.Unwiped(&h.Status) {
			return fmt.Errorf("hardware %q is %s and its disks were not wiped: %w (release it first: rackstrap release %s; or delete it with --force)", name, h.Status.State, workflow.ErrInUse, name)
		}
		return s.DeleteHardware(ctx, name, rev)
	}
}

func subnetResource(d Deps) *resource[hardware.Subnet] {
	s := d.Records
	return &resource[hardware.Subnet]{
		kind:   api.KindSubnet,
		meta:   func(n *hardware.Subnet) *hardware.Meta { return &n.Meta },
		spec:   func(n *hardware.Subnet) any { return n.Spec },
		check:  (*hardware.Subnet).Validate,
		keep:   keepAll[hardware.Subnet],
		show:   func(_ context.Context, n *hardware.Subnet) (any, error) { return n, nil },
		create: s.CreateSubnet, update: s.UpdateSubnet, remove: s.DeleteSubnet, get: s.SubnetByName, list: s.ListSubnets, cursor: s.Cursor,
		users: subnetUsers(s), force: forceSubnet(s),
	}
}

func templateResource(d Deps) *resource[workflow.Template] {
	s := d.Records
	return &resource[workflow.Template]{
		kind:  api.KindTemplate,
		meta:  func(t *workflow.Template) *hardware.Meta { return &t.Meta },
		spec:  func(t *workflow.Template) any { return t.Spec },
		check: (*workflow.Template).Validate,
		keep: func(v, old *workflow.Template) (*workflow.Template, []hardware.FieldError) {
			if old != nil {
				v = v.Unredacted(old)
			}
			var lost []hardware.FieldError
			for i, p := range v.Spec.Parameters {
				if p.Type == workflow.ParamSecret && p.Default == hardware.Redacted {
					lost = append(lost, hardware.FieldError{Field: fmt.Sprintf("spec.parameters[%d].default", i), Detail: lostSecret})
				}
			}
			return v, lost
		},
		show:   func(_ context.Context, t *workflow.Template) (any, error) { return t.Redacted(), nil },
		create: s.CreateTemplate, update: s.UpdateTemplate, remove: s.DeleteTemplate, get: s.TemplateByName, list: s.ListTemplates, cursor: s.Cursor,
		users: templateUsers(s),
	}
}

func workflowResource(d Deps) *resource[workflow.Workflow] {
	s := d.Records
	return &resource[workflow.Workflow]{
		kind: api.KindWorkflow, readOnly: []string{"status", "progress"},
		meta:  func(w *workflow.Workflow) *hardware.Meta { return &w.Meta },
		spec:  func(w *workflow.Workflow) any { return w.Spec },
		check: checkWorkflow,
		keep: func(v, old *workflow.Workflow) (*workflow.Workflow, []hardware.FieldError) {
			if old != nil {
				out := *v
				out.Spec = v.Spec.Unredacted(old.Spec)
				v = &out
			}
			var lost []hardware.FieldError
			for name, p := range v.Spec.Params {
				if p == hardware.Redacted {
					lost = append(lost, hardware.FieldError{Field: "spec.params." + name, Detail: lostSecret})
				}
			}
			return v, lost
		},
		show: func(ctx context.Context, w *workflow.Workflow) (any, error) {
			t, err := s.TemplateByName(ctx, w.Spec.Template)
			if err != nil && !errors.Is(err, workflow.ErrNotFound) {
				return nil, err
			}
			out := api.Workflow{Workflow: *w.Redacted(t)}
			if err := addLogSizes(d.Logs, &out.Workflow); err != nil { // the record is worth more than how long its logs are
				d.Log.Warn("attempt logs not looked at", "workflow", w.Meta.Name, "err", err)
			}
			if p, ok := d.Engine.Progress(w.Meta.Name); ok && !w.Status.State.Ended() {
				out.Progress = &p
			}
			return out, nil
		},
		create: func(ctx context.Context, w *workflow.Workflow) error {
			made, err := d.Engine.CreateWorkflow(ctx, w.Meta.Name, w.Spec)
			if err == nil {
				w.Meta = made.Meta // the engine chooses a name where there is none
			}
			return err
		},
		remove: s.DeleteWorkflow, get: s.Workflow, list: s.ListWorkflows, cursor: s.Cursor,
		sees: func(ctx context.Context, w *workflow.Workflow) (bool, error) {
			return followsMachine(ctx, s, w.Spec.Hardware, w.Status.HardwareUID)
		},
	}
}

func keepAll[T any](v, _ *T) (*T, []hardware.FieldError) { return v, nil }

// checkWorkflow says what is wrong with a workflow before its machine and template
// are looked at; the engine says the rest.
func checkWorkflow(w *workflow.Workflow) error {
	c := hardware.NewChecker("workflow", w.Meta.Name)
	if w.Meta.Name != "" {
		c.Add("metadata.name", hardware.ValidName(w.Meta.Name))
	}
	if len(w.Meta.Labels) > 0 {
		c.Addf("metadata.labels", "are not kept for workflows (leave them out)")
	}
	c.Add("spec.hardware", hardware.ValidName(w.Spec.Hardware))
	c.Add("spec.template", hardware.ValidName(w.Spec.Template))
	return c.Err()
}
