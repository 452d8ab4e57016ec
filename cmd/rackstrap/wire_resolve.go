package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/netconfig"
	"github.com/rackstrap/rackstrap/workflow"
)

// resolver fills in what only the appliance knows, at the moment an action is
// sent to its worker: where an image is, what the seed of the machine says.
type resolver struct {
	image func(ctx context.Context, name string) (*workflow.Image, error)
	seeds *seeds
}

func (r resolver) resolve(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
	o, err := workflow.DecodeOptions(a.Kind, a.With)
	if err != nil {
		return nil, err
	}
	if w != nil && w.Meta.UID == "" {
		r, w = r.draft(w)
	}
	switch o := o.(type) {
	case *workflow.ImageWrite:
		err = r.imageWrite(ctx, h, o)
	case *workflow.NetworkConfig:
		err = r.network(h, o)
	case *workflow.CloudInit:
		err = r.cloudInit(ctx, h, w, o)
	case *workflow.Ignition:
		err = ignition(h, o)
	case *workflow.SeedPartition:
		err = r.seedPartition(ctx, h, w, o)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// draft is for a workflow that nobody started yet. It has no uid, and its machine may
// have had no boot that knows our address; all else is found wrong as it will be.
func (r resolver) draft(w *workflow.Workflow) (resolver, *workflow.Workflow) {
	s, d := *r.seeds, *w
	s.base = func(context.Context, string) (string, error) { return "http://appliance.invalid", nil }
	d.Meta.UID = "draft"
	return resolver{image: r.image, seeds: &s}, &d
}

// network makes the configuration of the record, or looks at the given one, which the
// worker would refuse on a disk that is wiped by then.
func (r resolver) network(h *hardware.Hardware, o *workflow.NetworkConfig) error {
	if o.Config != "" {
		if _, err := netconfig.Parse(o.Config); err != nil {
			return fmt.Errorf("config: %w", err)
		}
		return nil
	}
	b, err := metadata.NetworkConfig(h, r.seeds.subnets(), nil)
	o.Config = string(b)
	return err
}

// static is the configuration of the record with what an install says besides.
func (r resolver) static(h *hardware.Hardware, n *hardware.StaticNetwork) (string, error) {
	b, err := metadata.NetworkConfig(h, r.seeds.subnets(), n)
	return string(b), err
}

// imageWrite replaces an image's name by its source and checksum.
func (r resolver) imageWrite(ctx context.Context, h *hardware.Hardware, o *workflow.ImageWrite) error {
	if hardware.ValidName(o.Image) != nil {
		return nil // a URL
	}
	img, err := r.image(ctx, o.Image)
	if errors.Is(err, workflow.ErrNotFound) {
		return fmt.Errorf("there is no image %q (see `rackstrap image list`, add it with `rackstrap image add %s FILE`)", o.Image, o.Image)
	}
	if err != nil {
		return err
	}
	if arch := img.Spec.Architecture(); arch != h.Arch() {
		return fmt.Errorf("image %q is for %s, hardware %q is %s", o.Image, arch, h.Meta.Name, h.Arch())
	}
	src, err := img.Source()
	if err != nil {
		return err
	}
	if img.Spec.Direct {
		o.Image, o.Checksum, o.Format, o.CA = src.URL, cmp.Or(o.Checksum, src.Checksum), cmp.Or(o.Format, src.Format), cmp.Or(o.CA, src.CA)
		return nil
	}
	// The file of the record may be a newer one: what counts is what is served.
	if served := img.Current().Renditions[0]; o.Checksum != "" && !served.Of(o.Checksum) {
		has := "sha256:" + served.Source.Digest
		if served.Source.Digest == "" {
			has = "a checksum that was not kept"
		}
		return fmt.Errorf("image %q has %s, and not %s as the action wants (correct its checksum, or leave it out)", o.Image, has, o.Checksum)
	}
	o.Image, o.Checksum, o.Format, o.CA, o.Insecure = src.URL, src.Checksum, src.Format, "", false
	return nil
}

// cloudInit writes out the whole seed, or the pointer to a served one.
func (r resolver) cloudInit(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow, o *workflow.CloudInit) error {
	f, err := r.seeds.seed(ctx, h, w, metadata.Input{UserData: o.UserData, VendorData: o.VendorData, MetaData: o.MetaData})
	if err != nil {
		return err
	}
	if o.Serve {
		p, err := r.seeds.pointer(ctx, h, w)
		*o = workflow.CloudInit{Disk: o.Disk, Partition: o.Partition, MetaData: p}
		return err
	}
	o.UserData, o.MetaData = string(f[metadata.FileUserData]), string(f[metadata.FileMetaData])
	o.VendorData = string(f[metadata.FileVendorData])
	return nil
}

// ignition takes the record's user-data where the action has no config. The record's
// may be of another kind, and is judged here.
func ignition(h *hardware.Hardware, o *workflow.Ignition) error {
	if o.Config != "" {
		return nil
	}
	o.Config = h.Spec.UserData
	if err := workflow.ValidIgnition(o.Config); err != nil {
		return fmt.Errorf("hardware %q: spec.userData %w", h.Meta.Name, err)
	}
	return nil
}

// seedPartition writes out the whole seed; what the action gives of it goes byte by
// byte, except for meta-data that lacks something of ours.
func (r resolver) seedPartition(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow, o *workflow.SeedPartition) error {
	if o.NetworkConfig != "" {
		if err := netconfig.Check(o.NetworkConfig); err != nil {
			return fmt.Errorf("networkConfig: %w", err)
		}
	}
	f, err := r.seeds.partition(ctx, h, w, o)
	if err != nil {
		return err
	}
	o.UserData, o.MetaData = string(f[metadata.FileUserData]), string(f[metadata.FileMetaData])
	o.VendorData, o.NetworkConfig = string(f[metadata.FileVendorData]), string(f[metadata.FileNetworkConfig])
	return nil
}
