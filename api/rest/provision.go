package rest

import (
	"bytes"
	"encoding/json"
	"errors"
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
	h, err := s.acted(r)
	if err != nil {
		return err
	}
	spec, err := provisionSpec(h, in)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if in.DryRun {
		made, err := s.Engine.Render(ctx, in.Name, spec)
		if err != nil {
			return err
		}
		return s.provisioned(w, r, http.StatusOK, made, true)
	}
	made, err := s.Engine.CreateWorkflow(ctx, in.Name, spec)
	status := http.StatusCreated
	if in.Name != "" && (errors.Is(err, workflow.ErrExists) || errors.Is(err, workflow.ErrInUse)) {
		// asked again, maybe because the answer was lost: the same install goes on
		old, gerr := s.Records.Workflow(ctx, in.Name)
		if gerr == nil && sameSpec(old.Spec, spec) && old.Status.HardwareUID == h.Meta.UID {
			made, err, status = old, nil, http.StatusOK
		}
	}
	if err != nil {
		return err
	}
	return s.provisioned(w, r, status, made, false)
}

func (s *server) provisioned(w http.ResponseWriter, r *http.Request, status int, made *workflow.Workflow, dry bool) error {
	t, err := s.Records.TemplateByName(r.Context(), made.Spec.Template)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return err
	}
	if dry {
		made.Meta.Created, made.Status.State = hardware.Meta{}.Created, ""
	}
	return writeJSON(w, status, api.Provisioned{Hardware: made.Spec.Hardware, Workflow: api.WorkflowOf(made.Redacted(t), nil), DryRun: dry})
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
