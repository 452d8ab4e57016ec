package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// The formats of user-data, and the built-in template of each.
func formatTemplates() map[string]string {
	return map[string]string{"": "install", "cloud-config": "install", "ignition": "install-ignition", "talos": "install-talos"}
}

// provision installs an operating system: a workflow from a template that anybody
// can look at.
func (s *server) provision(w http.ResponseWriter, r *http.Request) error {
	var in api.Provision
	if err := options(w, r, "provision", &in); err != nil {
		return err
	}
	on, err := s.forRequest(r)
	if err == nil && in.DryRun {
		on, err = on.asDry(r.Context())
	}
	if err != nil {
		return err
	}
	h, err := on.acted(r)
	if err != nil {
		return err
	}
	in.Claim = boundTo(r.Context(), h, in.Claim)
	spec, err := on.provisionFor(r.Context(), h, &in)
	if err != nil {
		return err
	}
	made, again, err := on.install(r.Context(), in.Name, h.Meta.UID, spec)
	if err != nil {
		return err
	}
	t, err := on.Records.TemplateByName(r.Context(), made.Spec.Template)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return err
	}
	out, status := *made.Redacted(t), http.StatusCreated
	if again || on.dry {
		status = http.StatusOK
	}
	if on.dry {
		out.Meta, out.Status.State = hardware.Meta{Name: out.Meta.Name}, ""
	}
	answer := api.Provisioned{Hardware: out.Spec.Hardware, Workflow: api.WorkflowOf(&out, nil), DryRun: on.dry}
	if on.dry {
		answer.Erases = workflow.Erases(h, made)
		if answer.Checks, err = on.provisionChecks(r.Context(), h, in, made.Spec.Params); err != nil {
			return err
		}
	}
	return writeJSON(w, status, answer)
}

// provisionFor makes the workflow of a request for one machine, of one or of many: with
// the image that it looks for, what a list of checksums says of it, and the network that
// is made from the record. It writes those into in. *hardware.Invalid.
func (s *server) provisionFor(ctx context.Context, h *hardware.Hardware, in *api.Provision) (workflow.WorkflowSpec, error) {
	if err := s.provisionImage(ctx, h, in); err != nil {
		return workflow.WorkflowSpec{}, err
	}
	if err := s.provisionChecksum(ctx, in); err != nil {
		return workflow.WorkflowSpec{}, err
	}
	if err := s.staticNetwork(h, in); err != nil {
		return workflow.WorkflowSpec{}, err
	}
	return provisionSpec(h, *in)
}

// provisionChecks is what speaks against an install that nothing refuses.
func (s *server) provisionChecks(ctx context.Context, h *hardware.Hardware, in api.Provision, params map[string]any) ([]api.Check, error) {
	snap, err := s.snapshot(ctx, h)
	if err != nil {
		return nil, err
	}
	plan, err := s.plannedInstall(ctx, h, in, params)
	if err != nil {
		return nil, err
	}
	return workflow.Validate(snap, plan), nil
}

// staticNetwork writes what the request says of the network into the configuration
// that is made from the record: *hardware.Invalid.
func (s *server) staticNetwork(h *hardware.Hardware, in *api.Provision) error {
	if in.Static.IsZero() {
		return nil
	}
	c := hardware.NewChecker("request", "provision")
	if in.Network != "" {
		c.Addf("static", "goes without network, which is the whole configuration (give one of them)")
	}
	if s.Network == nil {
		c.Addf("static", "is not written by this appliance (give network)")
	}
	in.Static.CheckFor(c, "static", h)
	err := c.Err()
	if err != nil {
		return err
	}
	in.Network, err = s.Network(h, in.Static)
	return err
}

// install starts an install. A name makes it one that can be asked for again, maybe
// because the answer was lost: the same install is not done twice, however far it is.
func (s *server) install(ctx context.Context, name, uid string, spec workflow.WorkflowSpec) (made *workflow.Workflow, again bool, err error) {
	if made, err = s.installed(ctx, name, uid, spec); made != nil || err != nil {
		return made, true, err
	}
	made, err = s.Engine.CreateWorkflow(ctx, name, spec)
	if errors.Is(err, workflow.ErrExists) || errors.Is(err, workflow.ErrInUse) {
		// two asked for it at the same time
		if first, ferr := s.installed(ctx, name, uid, spec); first != nil || ferr != nil {
			return first, true, ferr
		}
	}
	return made, false, err
}

// installed finds the install of that name, nil where there is none. It returns
// workflow.ErrExists where it is another one.
func (s *server) installed(ctx context.Context, name, uid string, spec workflow.WorkflowSpec) (*workflow.Workflow, error) {
	if name == "" {
		return nil, nil
	}
	old, err := s.Records.Workflow(ctx, name)
	switch {
	case errors.Is(err, workflow.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case old.Status.HardwareUID != uid || !sameSpec(old.Spec, spec):
		return nil, fmt.Errorf("workflow %q: %w, for another machine or with other values (choose another name)", hardware.PlainText(name, 80), workflow.ErrExists)
	}
	return old, nil
}

// sameSpec compares what is stored with what was sent; a number is a number.
func sameSpec(a, b workflow.WorkflowSpec) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// provisionSpec makes the workflow of a request: *hardware.Invalid.
func provisionSpec(h *hardware.Hardware, in api.Provision) (workflow.WorkflowSpec, error) {
	spec := workflow.WorkflowSpec{
		Hardware: h.Meta.Name, Template: in.Template, Reinstall: in.Reinstall, Purpose: workflow.PurposeInstall,
		WaitForPhoneHome: in.WaitForPhoneHome, Claim: in.Claim, Params: maps.Clone(in.Params),
	}
	c := hardware.NewChecker("request", "provision")
	template, known := formatTemplates()[in.Format]
	if !known {
		c.Addf("format", "%.40q is not known (cloud-config, ignition or talos)", in.Format)
	}
	if spec.Template == "" {
		spec.Template = template
	}
	if in.Image == "" {
		c.Addf("image", "is empty (the name of an image, see `rackstrap image list`, or an http(s) URL)")
	}
	if in.UserData == hardware.Redacted {
		c.Addf("userData", lostSecret)
	}
	if template != "install" && in.Network != "" && in.Template == "" && in.Format == "ignition" {
		c.Addf("network", "is not written for Ignition (put it into the Ignition config)")
	}
	if why := silent(template, spec.Template); in.WaitForPhoneHome && why != "" {
		c.Addf("waitForPhoneHome", "is not possible: %s (leave it out: the machine is provisioned when it restarts into its system)", why)
	}
	if given, _ := in.Params["userData"].(string); spec.Template == formatTemplates()["talos"] && in.UserData+given+h.Spec.UserData == "" {
		c.Addf("userData", "is missing, and the record has none: Talos does nothing without its machine config (make one with `talosctl gen config`, give it with --user-data FILE)")
	}
	for name, value := range map[string]string{
		"image": in.Image, "checksum": in.Checksum, "disk": in.Disk, "userData": in.UserData, "network": in.Network, "metaData": in.MetaData,
	} {
		if value == "" {
			continue // the template's default
		}
		if _, twice := spec.Params[name]; twice {
			c.Addf("params."+name, "is also a field of the request (give it once)")
			continue
		}
		if spec.Params == nil {
			spec.Params = map[string]any{}
		}
		spec.Params[name] = value
	}
	if err := c.Err(); err != nil {
		return spec, err
	}
	return spec, nil
}

// silent says why the system of a built-in template cannot phone home, empty if it can.
func silent(templates ...string) string {
	for _, t := range templates {
		switch t {
		case formatTemplates()["ignition"]:
			return "an Ignition config is written byte by byte, so nothing in it knows the URL to call"
		case formatTemplates()["talos"]:
			return "Talos reads its machine config only, and calls nobody"
		}
	}
	return ""
}
