package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestTrimWorkflows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	db, err := New(t.Context(), newMemory(), testSeal(1), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, 1}}}}}
	if err := db.CreateHardware(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for i := range keepWorkflows + 5 {
		now = now.Add(time.Second)
		w := &workflow.Workflow{Meta: hardware.Meta{Name: fmt.Sprintf("w%02d", i)}, Status: workflow.Status{HardwareUID: h.Meta.UID, State: workflow.StateSucceeded}}
		if i == 1 {
			w.Status.State = workflow.StateRunning
		}
		if err := db.Commit(t.Context(), &workflow.Change{Workflow: w}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := db.Machine(t.Context(), h.Meta.UID)
	if err != nil {
		t.Fatal(err)
	}
	m.Status.Install = &hardware.InstallRef{Workflow: "w00"}
	if err := db.Commit(t.Context(), &workflow.Change{Machine: m}); err != nil {
		t.Fatal(err)
	}
	if err := db.trimWorkflows(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := db.ListWorkflows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, w := range all {
		have[w.Meta.Name] = true
	}
	// the installed system's, the running one, and the newest twenty
	if len(all) != keepWorkflows+2 || !have["w00"] || !have["w01"] || have["w02"] || have["w04"] || !have["w05"] || !have["w24"] {
		t.Errorf("kept %d: %v", len(all), have)
	}
}
