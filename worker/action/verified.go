package action

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/block"
	"github.com/rackstrap/rackstrap/workflow"
)

// wipeAtOnce is how many disks are wiped at a time: overwriting takes a day for a
// large disk, and disks do not share the time.
const wipeAtOnce = 32

// wipeVerified wipes disks so that nothing of them can be read any more, and
// measures that. What the disks are part of is taken apart first. It succeeds when
// all of them are proven clean.
func wipeVerified(ctx context.Context, env Env, sel workflow.Disk) (Result, error) {
	targets, err := verifiedTargets(env, sel)
	if err != nil {
		return Result{}, untouched(err)
	}
	env.Log.Info("disks chosen", "asked_for", string(sel), "disks", list(targets))
	if len(targets) == 0 {
		env.Log.Warn("the machine has no fixed disk: is a driver missing?")
		return Result{Message: "no fixed disk: nothing to wipe"}, nil
	}
	for _, d := range targets {
		if err := takeApart(env, d); err != nil {
			return Result{}, err
		}
	}
	t := newTally(env, targets)
	proofs, errs := make([]hardware.WipedDisk, len(targets)), make([]error, len(targets))
	slots := make(chan struct{}, wipeAtOnce)
	var wg sync.WaitGroup
	for i, d := range targets {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			proofs[i], errs[i] = eraseDisk(ctx, env, d, t.disk(i))
		})
	}
	wg.Wait()
	out := Result{WrittenBytes: t.written()}
	if err := errors.Join(errs...); err != nil {
		return out, err
	}
	var paths, said []string
	for _, p := range proofs {
		paths = append(paths, p.Path)
		said = append(said, fmt.Sprintf("%s (%s, read %s back)", p.Path, p.Method, bytesText(p.Verified)))
	}
	out.Disk, out.Wiped = strings.Join(paths, ","), proofs
	out.Message = "wiped and verified " + strings.Join(said, ", ")
	return out, nil
}

// verifiedTargets chooses the disks. All of a machine that has none are none: it has
// nothing to prove. A machine with a fixed disk that cannot be wiped is refused: it
// would pass for clean with everything that is on that disk.
func verifiedTargets(env Env, sel workflow.Disk) ([]disk, error) {
	if sel != workflow.DiskAll {
		d, err := env.disk(sel)
		return []disk{d}, err
	}
	all, err := disks(env.Sys)
	if err != nil {
		return nil, err
	}
	var out []disk
	for _, d := range all {
		switch d.why {
		case "":
			out = append(out, d)
		case block.ReadOnly:
			return nil, permanentf("disk %s is write-protected and cannot be wiped (switch the protection off, or take the disk out)", d)
		case block.Zoned:
			return nil, permanentf("disk %s has zones that the host manages and cannot be wiped here (reset its zones with the maker's tool and take it out)", d)
		}
	}
	return out, nil
}

// eraseDisk wipes one disk, in a goroutine of its own.
func eraseDisk(ctx context.Context, env Env, d disk, report func(Progress)) (proof hardware.WipedDisk, err error) {
	defer func() {
		if p := recover(); p != nil {
			env.Log.Error("the wipe broke", "disk", d.path, "stack", string(debug.Stack()))
			err = fmt.Errorf("wipe %s: %v (a fault of Rackstrap: please report it)", d.path, p)
		}
	}()
	dev, err := openDevice(d.path)
	if err != nil {
		return proof, err
	}
	defer dev.Close()
	env.Log.Info("wiping disk", "disk", d.path, "bytes", dev.size, "serial", d.serial, "mode", workflow.WipeVerified)
	e, began := eraser{env: env, disk: d, dev: dev, report: report}, time.Now()
	proof, err = e.erase(ctx, e.methods())
	if err == nil {
		err = rescan(ctx, d, dev)
	}
	if err != nil {
		return proof, fmt.Errorf("wipe %s: %w", d.path, err)
	}
	env.Log.Info("disk is clean", "disk", d.path, "method", proof.Method, "read_back_bytes", proof.Verified, "took", took(began))
	return proof, nil
}

// tally adds the progress of disks that are wiped at the same time up.
type tally struct {
	env  Env
	mu   sync.Mutex
	each []Progress
}

func newTally(env Env, targets []disk) *tally {
	t := &tally{env: env, each: make([]Progress, len(targets))}
	for i, d := range targets {
		t.each[i].Total = d.size
	}
	return t
}

// disk is where the i-th disk reports to.
func (t *tally) disk(i int) func(Progress) {
	return func(p Progress) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.each[i] = p
		t.env.progress(t.sum(p.Note))
	}
}

func (t *tally) sum(note string) Progress {
	out := Progress{Note: note}
	for _, p := range t.each {
		out.Done, out.Total, out.Written = out.Done+p.Done, out.Total+p.Total, out.Written+p.Written
	}
	return out
}

func (t *tally) written() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum("").Written
}
