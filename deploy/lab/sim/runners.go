package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/workflow"
)

// runner is one kind of action on one machine.
type runner struct {
	kind workflow.Kind
	m    *Machine
	run  func(ctx context.Context, env action.Env, o workflow.Options) (action.Result, error)
}

// runners has one for every kind, for a worker with that address.
func (m *Machine) runners(from netip.Addr) map[workflow.Kind]action.Runner {
	out := map[workflow.Kind]action.Runner{}
	for kind, run := range map[workflow.Kind]func(context.Context, action.Env, workflow.Options) (action.Result, error){
		workflow.KindDiskWipe: m.wipe,
		workflow.KindImageWrite: func(ctx context.Context, env action.Env, o workflow.Options) (action.Result, error) {
			return m.writeImage(ctx, env, from, o.(*workflow.ImageWrite))
		},
		workflow.KindDiskGrow: func(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
			return m.change(env, workflow.KindDiskGrow, o.(*workflow.DiskGrow).Disk, "grew the last partition", func(*System) error { return nil })
		},
		workflow.KindFileWrite:     m.writeFile,
		workflow.KindNetworkConfig: m.writeNetwork,
		workflow.KindCloudInit:     m.writeCloudInit,
		workflow.KindIgnition:      m.writeIgnition,
		workflow.KindSeedPartition: m.writeSeed,
		workflow.KindReboot: func(context.Context, action.Env, workflow.Options) (action.Result, error) {
			return action.Result{Message: "the machine restarts", After: action.Reboot}, nil
		},
		workflow.KindPowerOff: func(context.Context, action.Env, workflow.Options) (action.Result, error) {
			return action.Result{Message: "the machine switches off", After: action.PowerOff}, nil
		},
	} {
		out[kind] = runner{kind, m, run}
	}
	return out
}

// Run implements [action.Runner]: it takes the action's time, fails where the machine's
// faults say so, and then does the action.
func (r runner) Run(ctx context.Context, env action.Env, options json.RawMessage) (action.Result, error) {
	o, err := workflow.DecodeOptions(r.kind, options)
	if err != nil {
		return action.Result{}, err
	}
	if text := r.m.spec.Log; text != "" {
		env.Log.Info(text)
	}
	for _, d := range r.m.disks {
		env.Log.Info("disk found", "disk", d.Path, "bytes", d.Bytes, "serial", d.Serial)
	}
	fails := r.m.fails(r.kind)
	if fails || r.kind != workflow.KindImageWrite { // which begins with a download
		r.m.takeTime(ctx, env, r.m.size(r.kind))
	}
	if ctx.Err() != nil {
		return action.Result{}, context.Cause(ctx)
	}
	if fails {
		return action.Result{}, errors.New("the simulation's fault")
	}
	return r.run(ctx, env, o)
}

// fails reports whether this attempt is one that fails.
func (m *Machine) fails(k workflow.Kind) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.Fail[k] == 0 {
		return false
	}
	m.faults.Fail[k]--
	return true
}

// size is how many bytes an action goes through; 0 is not known.
func (m *Machine) size(k workflow.Kind) (n int64) {
	if k == workflow.KindDiskWipe {
		for _, d := range m.disks {
			n += d.Bytes
		}
	}
	return n
}

// progressEvery is how often an action that takes time says how far it is.
const progressEvery = 250 * time.Millisecond

// sayEvery is how often it says in its log that it is at it.
const sayEvery = 2 * time.Second

// takeTime is the time that an action takes. It says how far it is in an amount of
// bytes, where there is one.
func (m *Machine) takeTime(ctx context.Context, env action.Env, size int64) {
	m.mu.Lock()
	d := m.faults.ActionTime
	m.mu.Unlock()
	if d == 0 {
		d = m.rack.o.ActionTime
	}
	said := time.Duration(0)
	for began := time.Now(); ctx.Err() == nil; {
		gone := time.Since(began)
		if gone-said >= sayEvery {
			said = gone
			env.Log.Info("at work", "of", d.String(), "gone", gone.Round(time.Second).String())
		}
		if gone >= d {
			return
		}
		if size > 0 && env.Progress != nil {
			done := int64(float64(size) * float64(gone) / float64(d))
			env.Progress(action.Progress{Done: done, Total: size, Written: done})
		}
		pause(ctx, min(progressEvery, d-gone))
	}
}

// wrote tells the rack of a write before it happens.
func (m *Machine) wrote(env action.Env, what workflow.Kind, d *disk) {
	m.mu.Lock()
	over := d.system.clone()
	m.mu.Unlock()
	m.rack.wrote(Write{At: time.Now(), Machine: m.spec.Name, Disk: d.Path, What: what, Workflow: env.Workflow, Over: over})
}

// becomes puts a system onto a disk, or takes it away.
func (m *Machine) becomes(d *disk, s *System) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d.system, d.layout = s, blank()
	if s != nil {
		d.layout = ofSystem(d.Bytes)
	}
	m.notify()
}

// wipe reads nothing back: there is nothing. The proof has what the worker reads of a
// disk at least, in bytes.
func (m *Machine) wipe(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
	w := o.(*workflow.DiskWipe)
	targets := m.disks
	if w.Disk != workflow.DiskAll {
		d, err := choose(m.disks, w.Disk)
		if err != nil {
			return action.Result{}, err
		}
		targets = []*disk{d}
	}
	var out action.Result
	var paths []string
	for _, d := range targets {
		m.wrote(env, workflow.KindDiskWipe, d)
		m.becomes(d, nil)
		paths = append(paths, d.Path)
		if w.Mode == workflow.WipeVerified {
			out.Wiped = append(out.Wiped, hardware.WipedDisk{
				Path: d.Path, Serial: d.Serial, Bytes: d.Bytes, Method: hardware.WipedByDiscard, Verified: min(d.Bytes, 96<<20),
			})
		} else {
			out.WrittenBytes += 2 << 20
		}
	}
	out.Disk, out.Message = strings.Join(paths, ","), "wiped "+strings.Join(paths, ", ")+" and read back"
	return out, nil
}

// change writes into the system of a disk, which must have one.
func (m *Machine) change(env action.Env, what workflow.Kind, sel workflow.Disk, did string, write func(*System) error) (action.Result, error) {
	d, err := choose(m.disks, sel)
	if err != nil {
		return action.Result{}, err
	}
	m.wrote(env, what, d)
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.system == nil {
		return action.Result{}, fmt.Errorf("disk %s has no partitions (write an image first)", d.Path)
	}
	s := d.system.clone()
	if err := write(s); err != nil {
		return action.Result{}, err
	}
	d.system = s
	m.notify()
	return action.Result{Disk: d.Path, Message: did + " on " + d.Path}, nil
}

func (m *Machine) writeFile(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
	f := o.(*workflow.FileWrite)
	return m.change(env, workflow.KindFileWrite, f.Disk, "wrote "+f.Path, func(s *System) error {
		if s.Files == nil {
			s.Files = map[string][]byte{}
		}
		s.Files[f.Path] = []byte(f.Content)
		return nil
	})
}

func (m *Machine) writeNetwork(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
	n := o.(*workflow.NetworkConfig)
	return m.change(env, workflow.KindNetworkConfig, n.Disk, "wrote the network configuration", func(s *System) error {
		s.NetworkConfig = []byte(n.Config)
		return nil
	})
}

var errNoMetaData = errors.New("metaData is empty: a seed needs an instance-id")

func (m *Machine) writeCloudInit(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
	c := o.(*workflow.CloudInit)
	if c.MetaData == "" {
		return action.Result{}, errNoMetaData
	}
	return m.change(env, workflow.KindCloudInit, c.Disk, "wrote the cloud-init seed", func(s *System) error {
		s.Format, s.UserData, s.MetaData, s.VendorData = CloudConfig, []byte(c.UserData), []byte(c.MetaData), []byte(c.VendorData)
		s.InstanceID = s.Meta("instance-id")
		return nil
	})
}

func (m *Machine) writeIgnition(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
	i := o.(*workflow.Ignition)
	if err := workflow.ValidIgnition(i.Config); err != nil {
		return action.Result{}, fmt.Errorf("config %w", err)
	}
	return m.change(env, workflow.KindIgnition, i.Disk, "wrote the Ignition config", func(s *System) error {
		s.Format, s.UserData = Ignition, []byte(i.Config)
		return nil
	})
}

func (m *Machine) writeSeed(_ context.Context, env action.Env, o workflow.Options) (action.Result, error) {
	p := o.(*workflow.SeedPartition)
	if p.MetaData == "" {
		return action.Result{}, errNoMetaData
	}
	return m.change(env, workflow.KindSeedPartition, p.Disk, "added a partition with the seed", func(s *System) error {
		s.Format, s.UserData, s.MetaData, s.VendorData, s.NetworkConfig = Talos, []byte(p.UserData), []byte(p.MetaData), []byte(p.VendorData), []byte(p.NetworkConfig)
		s.InstanceID = s.Meta("instance-id")
		return nil
	})
}
