package rest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// provisionImage sets the image of a request that says what must be in it, to the one
// image that fits it and the machine: *hardware.Invalid.
func (s *server) provisionImage(ctx context.Context, h *hardware.Hardware, in *api.Provision) error {
	q := workflow.ImageQuery{OS: in.OS, OSVersion: in.OSVersion, KubernetesVersion: in.KubernetesVersion}
	if q == (workflow.ImageQuery{}) {
		return nil
	}
	c := hardware.NewChecker("request", "provision")
	if in.Image != "" {
		c.Addf("image", "and os, osVersion, kubernetesVersion exclude each other (they look for an image)")
		return c.Err()
	}
	all, err := s.Records.ListImages(ctx)
	if err != nil {
		return err
	}
	q.Arch = h.Arch()
	found, err := workflow.FindImage(all, q)
	if errors.Is(err, workflow.ErrNotFound) || errors.As(err, new(*workflow.AmbiguousImage)) {
		c.Addf("image", "is not told by the request: %s", err)
		return c.Err()
	}
	if err != nil {
		return err
	}
	in.Image = found.Meta.Name
	return nil
}

// sumsWait is how long the server of a list of checksums may take.
const sumsWait = 20 * time.Second

// provisionChecksum replaces the URL of a list of checksums by what the list says of
// the image: *hardware.Invalid. An install that was asked for before keeps what the
// list said then, for it is the same install.
func (s *server) provisionChecksum(ctx context.Context, in *api.Provision) error {
	if !strings.Contains(in.Checksum, "://") {
		return nil
	}
	c := hardware.NewChecker("request", "provision")
	if !strings.Contains(in.Image, "://") {
		c.Addf("checksum", "is the URL of a list, which is for an image by URL (leave it out: an image of the appliance was checked when it came)")
		return c.Err()
	}
	if in.Name != "" {
		old, err := s.Records.Workflow(ctx, in.Name)
		if err != nil && !errors.Is(err, workflow.ErrNotFound) {
			return err
		}
		if err == nil {
			if sum, _ := old.Spec.Params["checksum"].(string); workflow.ValidChecksum(sum) == nil {
				in.Checksum = sum
				return nil
			}
		}
	}
	if s.Sums == nil {
		c.Addf("checksum", "is a URL, and this appliance reads no lists (write sha256:<hex>)")
		return c.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, sumsWait)
	defer cancel()
	sum, err := s.Sums(ctx, in.Checksum, in.Image)
	if err != nil {
		c.Addf("checksum", "%s", err)
		return c.Err()
	}
	in.Checksum = sum
	return nil
}
