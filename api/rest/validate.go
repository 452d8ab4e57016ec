package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func (s *server) validate(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := queryKnown(q, "image", "template", "format", "disk", "reinstall"); err != nil {
		return err
	}
	h, err := s.hardware.find(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	snap, err := s.snapshot(r.Context(), h)
	if err != nil {
		return err
	}
	in := api.Provision{Image: q.Get("image"), Template: q.Get("template"), Format: q.Get("format"), Disk: q.Get("disk")}
	if v := q.Get("reinstall"); v != "" {
		if in.Reinstall, err = strconv.ParseBool(v); err != nil {
			return badRequest("true or false", "reinstall=%.20q is neither yes nor no", v)
		}
	}
	params := map[string]any{}
	if in.Image != "" {
		params["image"] = in.Image
	}
	if in.Disk != "" {
		params["disk"] = in.Disk
	}
	plan, err := s.plannedInstall(r.Context(), h, in, params)
	if err != nil {
		return err
	}
	checks := workflow.Validate(snap, plan)
	return writeJSON(w, http.StatusOK, api.Validation{Hardware: h.Meta.Name, Ready: workflow.Ready(checks), Checks: checks})
}

// plannedInstall is what the request means to install with those parameters, and what is
// known of it.
func (s *server) plannedInstall(ctx context.Context, h *hardware.Hardware, in api.Provision, params map[string]any) (workflow.Plan, error) {
	p := workflow.Plan{ImageName: in.Image, TemplateName: in.Template, Disk: workflow.Disk(in.Disk), Params: params, Reinstall: in.Reinstall}
	format := in.Format
	if p.TemplateName == "" {
		var known bool
		if p.TemplateName, known = formatTemplates()[format]; !known {
			return p, badRequest("cloud-config, ignition or talos", "format=%.40q is not known", format)
		}
	}
	t, err := s.Records.TemplateByName(ctx, p.TemplateName)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return p, err
	}
	if err == nil {
		p.Template = t
	}
	if p.ImageName != "" && !strings.Contains(p.ImageName, "/") {
		i, err := s.Records.ImageByName(ctx, p.ImageName)
		if err != nil && !errors.Is(err, workflow.ErrNotFound) {
			return p, err
		}
		if err == nil {
			p.Image = plannedImage(i)
		}
	}
	if s.BootFiles != nil {
		p.BootFiles = s.BootFiles(h.Arch())
	}
	for f, template := range formatTemplates() {
		if template == p.TemplateName && silent(template) != "" {
			format, p.NeedsUserData = f, true
		}
	}
	p.UserData = readable(format, cmp.Or(in.UserData, h.Spec.UserData))
	for _, o := range s.machines(ctx) {
		if o.Meta.UID != h.Meta.UID && strings.EqualFold(o.HostName(), h.HostName()) {
			p.SameHostname = o.Meta.Name
			break
		}
	}
	return p, nil
}

// plannedImage is what an install wants to know of an image.
func plannedImage(i *workflow.Image) *workflow.PlannedImage {
	out := &workflow.PlannedImage{Arch: i.Spec.Arch, Ready: true, DiskBytes: i.Current().DiskBytes}
	if _, err := i.Source(); err != nil {
		out.Ready, out.Why = false, err.Error()
	}
	return out
}

// readable says why user-data is not what its format says. Only its form is looked
// at: what cloud-init makes of a key is its own affair.
func readable(format, text string) error {
	if text == "" {
		return nil
	}
	data := []byte(text)
	if format == "ignition" {
		return wrap("the Ignition config", workflow.ValidIgnition(text))
	}
	if format == "talos" {
		return wrap("the Talos config", document.CheckYAML(data))
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	switch head := strings.TrimSpace(string(first)); {
	case head == "#cloud-config":
		return wrap("the cloud-config", document.CheckYAML(data))
	case strings.HasPrefix(head, "#") || strings.HasPrefix(head, "Content-Type:") || strings.HasPrefix(head, "MIME-Version:"):
		return nil // a script, a list of URLs, a Jinja template, several parts in MIME
	default:
		// the line itself may be a secret
		return errors.New("the first line of the user-data says nothing to cloud-init: it wants #cloud-config, a script (#!) or MIME")
	}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
