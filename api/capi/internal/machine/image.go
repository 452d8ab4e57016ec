package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/workflow"
)

// image is what is installed: a name or a URL, or what the appliance is to look for
// when it knows the machine.
type image struct {
	name, checksum                   string
	os, osVersion, kubernetesVersion string
}

// findImage looks whether the image is there. missing says that it is not, and what to
// type.
func findImage(ctx context.Context, a *appliance.Appliance, spec infrav1.Image, arch, version string) (found *image, missing string, err error) {
	switch {
	case spec.URL != "":
		return &image{name: spec.URL, checksum: spec.Checksum}, "", nil
	case spec.Lookup != nil && spec.Lookup.Format == "":
		q := workflow.ImageQuery{OS: spec.Lookup.OS, OSVersion: spec.Lookup.Version, KubernetesVersion: version, Arch: arch}
		all, err := a.FindImages(ctx, q)
		if err != nil {
			return nil, "", err
		}
		found, missing := lookedUp(q, all)
		return found, missing, nil
	}
	name := spec.Name
	if spec.Lookup != nil {
		name = imageName(spec.Lookup, version)
	}
	i, err := a.Images.Get(ctx, name)
	var p *api.Problem
	if errors.As(err, &p) && p.Code == api.CodeNotFound {
		return nil, fmt.Sprintf("The appliance has no image %s; add it: rackstrap image add %s FILE-OR-URL", name, name), nil
	}
	if err != nil {
		return nil, "", err
	}
	if why := unusable(i); why != "" {
		return nil, why, nil
	}
	return &image{name: name}, "", nil
}

// lookedUp judges what the appliance found.
func lookedUp(q workflow.ImageQuery, all []api.Image) (found *image, missing string) {
	flags := "--os " + q.OS
	if q.OSVersion != "" {
		flags += " --os-version " + q.OSVersion
	}
	flags += " --kubernetes-version " + q.KubernetesVersion
	if q.KubernetesVersion == "" {
		return nil, "The Machine has no spec.version, which is looked for in the images; set it, or name the image"
	}
	if len(all) == 0 {
		return nil, fmt.Sprintf("The appliance has no image for %s; add it: rackstrap image add NAME FILE-OR-URL %s", q, flags)
	}
	why, ready := "", map[string]string{} // architecture to name
	for i := range all {
		if w := unusable(&all[i]); w != "" {
			why = w
			continue
		}
		arch := all[i].Spec.Architecture()
		if first, twice := ready[arch]; twice {
			return nil, fmt.Sprintf("The images %s and %s both fit %s; name one of them, or ask for more", first, all[i].Meta.Name, q)
		}
		ready[arch] = all[i].Meta.Name
	}
	if len(ready) == 0 {
		return nil, why
	}
	if len(all) == 1 {
		return &image{name: all[0].Meta.Name}, ""
	}
	return &image{os: q.OS, osVersion: q.OSVersion, kubernetesVersion: q.KubernetesVersion}, ""
}

// unusable says why an image that is there cannot be installed, empty if it can.
func unusable(i *api.Image) string {
	switch {
	case i.Spec.Direct || i.Status.State == workflow.ImageReady:
		return ""
	case i.Status.State == workflow.ImageFailed:
		return fmt.Sprintf("The image %s cannot be used: %s; see: rackstrap image get %s", i.Meta.Name, i.Status.Message, i.Meta.Name)
	}
	return fmt.Sprintf("The appliance still fetches the image %s; see: rackstrap image get %s", i.Meta.Name, i.Meta.Name)
}

// imageName fills in a format; what cannot be in a name becomes a dash.
func imageName(l *infrav1.ImageLookup, version string) string {
	s := strings.NewReplacer("{os}", l.OS, "{version}", l.Version, "{kubernetesVersion}", version).Replace(l.Format)
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
