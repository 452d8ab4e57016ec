package rest

import (
	"context"
	"errors"

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
