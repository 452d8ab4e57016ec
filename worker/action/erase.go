package action

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/rackstrap/rackstrap/hardware"
)

// What is read back of a disk after a verified wipe: both ends, wherever the disk
// or a partition that was on it had a table or a superblock, the places that held
// something before, and samples that are spread evenly. A disk that kept the
// fraction f of its blocks passes the samples alone with a probability of
// (1-f)^1024: 0.004 % for one percent. That is 32 MiB in a row and a thousand seeks,
// some 15 seconds for a disk that turns; a small disk is read whole.
const (
	verifyEnds   = 16 * mib  // bytes of each end
	verifyTimes  = 1024      // samples
	verifySample = 64 << 10  // bytes of each
	verifyWhole  = 256 * mib // up to this size, all of the disk is read
	// rememberTimes are looked at before the wipe. Those that hold something are read
	// again afterwards: on a disk that is mostly empty, they tell more than samples of
	// what was zero anyway.
	rememberTimes = 512
)

// method is a way to make a disk read zero.
type method struct {
	proof string // as the proof names it
	note  string // as the progress and the log name it
	step  int64  // bytes at a time
	erase func(extent) error
}

// eraser wipes one disk and proves it.
type eraser struct {
	env    Env
	disk   disk
	dev    *device
	report func(Progress)

	before  []extent // held something before the wipe
	written int64
}

// methods lists what to try, the fastest first. A discard promises nothing, so it
// is judged by what is read afterwards, and so is the disk's own command for zeros.
// Plain writes are what is left for disks that lie about both.
func (e *eraser) methods() []method {
	var out []method
	if s := attr(e.disk.sys, "queue/discard_max_bytes"); s != "" && s != "0" {
		out = append(out, method{hardware.WipedByDiscard, "discard", discardStep, e.dev.discard})
	}
	return append(out,
		method{hardware.WipedByOverwrite, "overwrite", zeroStep, e.dev.zero},
		method{hardware.WipedByOverwrite, "overwrite again", zeroStep, e.dev.writeZeros})
}

// erase tries the methods until one leaves a disk that reads zero. A disk that
// still holds something after all of them is a failure that no attempt mends.
func (e *eraser) erase(ctx context.Context, all []method) (hardware.WipedDisk, error) {
	areas, err := e.areas()
	if err != nil {
		return hardware.WipedDisk{}, err
	}
	e.remember(ctx)
	var last error
	for _, m := range all {
		e.env.Log.Info("erasing", "disk", e.disk.path, "method", m.note, "held_something", len(e.before))
		if last = e.apply(ctx, m); last == nil {
			var verified int64
			if verified, last = e.verify(ctx, areas); last == nil {
				return hardware.WipedDisk{Path: e.disk.path, Serial: e.disk.serial, Bytes: e.dev.size, Method: m.proof, Verified: verified}, nil
			}
		}
		if ctx.Err() != nil {
			return hardware.WipedDisk{}, context.Cause(ctx)
		}
		e.env.Log.Warn("the disk is not clean after that", "disk", e.disk.path, "method", m.note, "error", last)
	}
	var remains remainsError
	if errors.As(last, &remains) {
		return hardware.WipedDisk{}, remains.replace()
	}
	return hardware.WipedDisk{}, last
}

// apply uses one method on all of the disk.
func (e *eraser) apply(ctx context.Context, m method) error {
	for at := int64(0); at < e.dev.size; at += m.step {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := extent{at, min(m.step, e.dev.size-at)}
		if err := m.erase(part); err != nil {
			return err
		}
		if m.proof == hardware.WipedByOverwrite {
			e.written += part.length
		}
		e.report(Progress{Done: part.end(), Total: e.dev.size, Written: e.written, Note: m.note + " " + e.disk.path})
	}
	return e.dev.flush()
}

// verify reads back and returns how many bytes were zero, or a [remainsError].
func (e *eraser) verify(ctx context.Context, areas []extent) (int64, error) {
	e.report(Progress{Done: e.dev.size, Total: e.dev.size, Written: e.written, Note: "read back " + e.disk.path})
	e.dev.dropCache()
	buf := alignedBuffer(mib)
	var verified int64
	for _, a := range merge(slices.Concat(areas, e.before, spread(e.dev.size, verifyTimes)), e.dev.size, e.dev.sector) {
		// A large area in parts, so that a cancelled action ends soon.
		for at := a.offset; at < a.end(); at += verifyEnds {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			part := extent{at, min(verifyEnds, a.end()-at)}
			if err := e.dev.readsZero(part, buf); err != nil {
				return 0, err
			}
			verified += part.length
		}
	}
	return verified, nil
}

// areas are what is read back of any disk: its ends, and the places of signatures
// on it and on the partitions that it has now.
func (e *eraser) areas() ([]extent, error) {
	size := e.dev.size
	if size <= verifyWhole {
		return []extent{{0, size}}, nil
	}
	out := append(signatures(extent{0, size}), extent{0, verifyEnds}, extent{size - verifyEnds, verifyEnds})
	parts, err := partitions(e.disk)
	for _, p := range parts {
		out = append(out, signatures(extent{p.start, p.size})...)
	}
	return out, err
}

// remember finds places that hold something. What cannot be read is none: the wipe
// may be what mends it.
func (e *eraser) remember(ctx context.Context) {
	buf := alignedBuffer(mib)
	for _, s := range merge(spread(e.dev.size, rememberTimes), e.dev.size, e.dev.sector) {
		if ctx.Err() != nil {
			return
		}
		var remains remainsError
		if errors.As(e.dev.readsZero(s, buf), &remains) {
			e.before = append(e.before, s)
		}
	}
}

// spread chooses samples of a disk, one at a random place in each of n equal parts.
func spread(size int64, n int64) []extent {
	out := make([]extent, 0, n)
	for i := range n {
		from, to := size/n*i, size/n*(i+1)
		out = append(out, extent{from + rand.Int64N(max(to-from-verifySample, 1)), verifySample})
	}
	return out
}
