package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
	"github.com/rackstrap/rackstrap/workflow"
)

// power is the engine's way to the machines' controllers.
type power struct{ *bmc.Power }

func newPower(reg prometheus.Registerer) power {
	return power{bmc.NewPower(bmc.Options{NewID: workflow.NewID}, bmc.NewMetrics(reg))}
}

// Do implements workflow.Power.
func (p power) Do(ctx context.Context, h *hardware.Hardware, action, nextBoot string) (workflow.PowerOutcome, error) {
	out, err := p.Power.Do(ctx, h, action, nextBoot)
	return workflow.PowerOutcome(out), err
}
