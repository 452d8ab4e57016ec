package main

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestPower: what a machine without power control gets is an instruction and no error.
func TestPower(t *testing.T) {
	t.Parallel()
	var p workflow.Power = newPower(prometheus.NewPedanticRegistry())
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Rack: "a1", Position: "12"}}
	out, err := p.Do(t.Context(), h, "on", "")
	want := workflow.PowerOutcome{Driver: hardware.PowerManual, Message: "switch m1 on (rack a1, position 12); it continues at its next DHCP packet"}
	if err != nil || out != want {
		t.Errorf("%+v, %v, want %+v", out, err, want)
	}
}
