package action

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// zeroStep and discardStep bound one command, so that a cancelled action
	// ends soon and progress moves.
	zeroStep    = 256 << 20
	discardStep = 64 << 30
	// wipeSamples are read back after a whole disk was overwritten.
	wipeSamples = 64
)

// diskWipe destroys what is on one disk or on all of them.
func diskWipe(ctx context.Context, env Env, o workflow.DiskWipe) (Result, error) {
	if o.Mode == workflow.WipeVerified {
		return wipeVerified(ctx, env, o.Disk)
	}
	targets, err := wipeTargets(env, o.Disk)
	if err != nil {
		return Result{}, untouched(err)
	}
	var out Result
	var paths []string
	for _, d := range targets {
		if err := d.inUse(); err != nil {
			return out, untouched(err)
		}
	}
	for _, d := range targets {
		written, err := wipeDisk(ctx, env, d, o.Mode)
		out.WrittenBytes += written
		if err != nil {
			return out, fmt.Errorf("wipe %s: %w", d.path, err)
		}
		paths = append(paths, d.path)
	}
	out.Disk = strings.Join(paths, ",")
	out.Message = fmt.Sprintf("wiped %s (%s) and read back", strings.Join(paths, ", "), orDefault(o.Mode, workflow.WipeQuick))
	return out, nil
}

func wipeTargets(env Env, sel workflow.Disk) ([]disk, error) {
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
		if d.usable {
			out = append(out, d)
		}
	}
	env.Log.Info("disks chosen", "asked_for", string(sel), "disks", list(out), "found", list(all))
	if len(out) == 0 {
		return nil, permanentf("the machine has no disk that can be wiped; found %s", list(all))
	}
	return out, nil
}

// wipeDisk wipes one disk and reads it back. It returns the bytes overwritten.
func wipeDisk(ctx context.Context, env Env, d disk, mode string) (int64, error) {
	dev, err := openDevice(d.path)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	env.Log.Info("wiping disk", "disk", d.path, "bytes", dev.size, "serial", d.serial, "mode", orDefault(mode, workflow.WipeQuick))
	w, began := wiper{env: env, dev: dev, disk: d}, time.Now()
	if mode == workflow.WipeZero {
		err = w.overwrite(ctx)
	} else {
		err = w.quick(ctx)
	}
	if err != nil {
		return w.written, err
	}
	if err := rescan(ctx, d, dev); err != nil {
		return w.written, err
	}
	env.Log.Info("disk wiped and read back", "disk", d.path, "written_bytes", w.written, "took", took(began))
	return w.written, nil
}

type wiper struct {
	env     Env
	dev     *device
	disk    disk
	written int64
}

// quick discards the disk and overwrites every place that could make anybody
// recognise something on it.
func (w *wiper) quick(ctx context.Context) error {
	areas := signatures(extent{0, w.dev.size})
	parts, err := partitions(w.disk)
	if err != nil {
		return err
	}
	for _, p := range parts {
		areas = append(areas, signatures(extent{p.start, p.size})...)
	}
	areas = merge(areas, w.dev.size, w.dev.sector)
	if err := w.discardAll(ctx); err != nil {
		return err
	}
	for _, a := range areas {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.dev.zero(a); err != nil {
			return err
		}
		w.written += a.length
	}
	if err := w.dev.flush(); err != nil {
		return err
	}
	return w.dev.checkZero(areas)
}

// discardAll is a service to the flash and no part of the promise: a disk that
// refuses it is wiped all the same.
func (w *wiper) discardAll(ctx context.Context) error {
	if s := attr(w.disk.sys, "queue/discard_max_bytes"); s == "0" || s == "" {
		w.env.Log.Info("disk has no discard", "disk", w.disk.path)
		return nil
	}
	for at := int64(0); at < w.dev.size; at += discardStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.dev.discard(extent{at, min(discardStep, w.dev.size-at)}); err != nil {
			w.env.Log.Warn("disk refused a discard", "disk", w.disk.path, "error", err)
			return nil
		}
		w.env.progress(Progress{Done: min(at+discardStep, w.dev.size), Total: w.dev.size, Note: "discard"})
	}
	return nil
}

// overwrite writes zeros over everything and reads both ends and samples back.
func (w *wiper) overwrite(ctx context.Context) error {
	for at := int64(0); at < w.dev.size; at += zeroStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := extent{at, min(zeroStep, w.dev.size-at)}
		if err := w.dev.zero(step); err != nil {
			return err
		}
		w.written += step.length
		w.env.progress(Progress{Done: w.written, Total: w.dev.size, Written: w.written, Note: "overwrite"})
	}
	if err := w.dev.flush(); err != nil {
		return err
	}
	samples := signatures(extent{0, w.dev.size})
	for range wipeSamples {
		samples = append(samples, extent{rand.Int64N(w.dev.size), mib})
	}
	return w.dev.checkZero(merge(samples, w.dev.size, w.dev.sector))
}
