package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/store/logs"
	"github.com/rackstrap/rackstrap/workflow"
)

// openStore opens the real store in dir, as the daemon does. close lets go of it
// before the test ends.
func openStore(t *testing.T, dir string) (db *store.DB, closeIt func()) {
	t.Helper()
	kv, err := bolt.Open(filepath.Join(dir, "rackstrap.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	closeIt = func() {
		if closed {
			return
		}
		closed = true
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(closeIt)
	db, err = store.Open(t.Context(), kv, filepath.Join(dir, "seal.key"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return db, closeIt
}

// site is a store with the machines m1 and m2 (arm64) in one subnet, and an engine.
type site struct {
	t      *testing.T
	db     *store.DB
	engine *workflow.Engine
}

func newSite(t *testing.T) *site {
	t.Helper()
	db, _ := openStore(t, t.TempDir())
	s := &site{t: t, db: db}
	s.must(db.CreateSubnet(t.Context(), &hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{
		Prefix: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"),
	}}))
	for i, arch := range []string{"", "arm64"} {
		name := []string{"m1", "m2"}[i]
		s.must(db.CreateHardware(t.Context(), &hardware.Hardware{Meta: hardware.Meta{Name: name}, Spec: hardware.Spec{
			Arch: arch, SSHKeys: []string{"ssh-ed25519 AAAA " + name},
			Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, byte(i)}, Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(5 + i)}), 24)}}},
		}}))
	}
	s.engine = workflow.NewEngine(workflow.Config{
		Store: db, Templates: db.TemplateByName, HardwareByName: db.HardwareByName,
		Resolve: func(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
			return a.With, nil
		},
		Logs: logs.Open(t.TempDir()), Note: func(workflow.Event) {}, TokenKey: make([]byte, 32),
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// start makes the workflow of that name on a machine, with one action.
func (s *site) start(name, machine string, kind workflow.Kind, options workflow.Options) *workflow.Workflow {
	s.t.Helper()
	raw, err := json.Marshal(options)
	s.must(err)
	var with map[string]any
	s.must(json.Unmarshal(raw, &with))
	template := "t-" + name + "-" + machine
	s.must(s.db.CreateTemplate(s.t.Context(), &workflow.Template{
		Meta: hardware.Meta{Name: template}, Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{{Name: "a", Kind: kind, With: with}}},
	}))
	w, err := s.engine.CreateWorkflow(s.t.Context(), name, workflow.WorkflowSpec{Hardware: machine, Template: template})
	s.must(err)
	return w
}

// end cancels a workflow and deletes its record.
func (s *site) end(name string) {
	s.t.Helper()
	_, err := s.engine.CancelWorkflow(s.t.Context(), name, "test")
	s.must(err)
	s.must(s.db.DeleteWorkflow(s.t.Context(), name, 0))
}

func (s *site) machine(name string) *hardware.Hardware {
	s.t.Helper()
	h, err := s.db.HardwareByName(s.t.Context(), name)
	s.must(err)
	return h
}
