package store

import (
	"context"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// trimEvery is how often it is looked whether enough events came to trim, or enough
// claims ended; trimEndedEvery how often claims and workflows are looked at that ended
// long ago. Only claims have to be trimmed before that: an owner can end them in a loop.
const (
	trimEvery      = 10 * time.Second
	trimEndedEvery = time.Hour
)

// trimLoop trims when a twentieth of the bound was written since last time, and
// once at start.
func (db *DB) trimLoop(ctx context.Context) {
	db.written.Add(int64(db.opts.MaxEvents))
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	var claims, workflows time.Time
	for {
		n, now := db.ended.Load(), db.opts.Now()
		if now.Sub(claims) >= trimEndedEvery || n >= trimClaimsAfter {
			if err := db.trimClaims(ctx); err != nil && ctx.Err() == nil {
				db.opts.Log.Warn("claims that ended are not trimmed", "err", err)
			} else {
				claims = now
				db.ended.Add(-n)
			}
		}
		if now.Sub(workflows) >= trimEndedEvery {
			if err := db.trimWorkflows(ctx); err != nil && ctx.Err() == nil {
				db.opts.Log.Warn("workflows that ended are not trimmed", "err", err)
			} else {
				workflows = now
			}
		}
		if n := db.written.Load(); n > int64(db.opts.MaxEvents)/20 {
			if err := db.trim(ctx); err != nil && ctx.Err() == nil {
				db.opts.Log.Warn("the event log is not trimmed", "err", err)
			} else {
				db.written.Add(-n)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// trim removes the events of all but the newest boots of each machine, then the
// oldest events beyond the bound. It reads keys only, jumps from boot to boot, and
// deletes in transactions of their own.
func (db *DB) trim(ctx context.Context) error {
	if err := db.trimBoots(ctx); err != nil {
		return err
	}
	return db.trimTotal(ctx)
}

func (db *DB) trimBoots(ctx context.Context) error {
	after := ""
	for {
		uid, ok, err := db.nextPart(ctx, prefixTimeline, after)
		if err != nil || !ok {
			return err
		}
		if err := db.trimMachine(ctx, prefixTimeline+uid+"/"); err != nil {
			return err
		}
		after = uid
	}
}

// trimMachine trims one timeline.
func (db *DB) trimMachine(ctx context.Context, timeline string) error {
	var boots []string
	after := ""
	for {
		boot, ok, err := db.nextPart(ctx, timeline, after)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if boot != noBoot {
			boots = append(boots, boot)
		}
		after = boot
	}
	if len(boots) <= db.opts.KeepBoots {
		return nil
	}
	cut := len(boots) - db.opts.KeepBoots
	for _, boot := range boots[:cut] {
		if err := db.dropEvents(ctx, timeline+boot+"/", ""); err != nil {
			return err
		}
	}
	// What belongs to no boot goes with the boots of its time.
	return db.dropEvents(ctx, timeline+noBoot+"/", boots[cut])
}

// nextPart finds the next part of a key after prefix: the uid after another, or
// the boot.
func (db *DB) nextPart(ctx context.Context, prefix, after string) (string, bool, error) {
	r := Range{Prefix: prefix, Limit: 1, KeysOnly: true}
	if after != "" {
		r.After = prefix + after + "0" // '0' follows '/'
	}
	p, err := db.kv.List(ctx, r)
	if err != nil || len(p.Entries) == 0 {
		return "", false, err
	}
	part, _, _ := strings.Cut(p.Entries[0].Key[len(prefix):], "/")
	return part, true, nil
}

// dropEvents removes the events below a place in a timeline whose ids are before
// the bound ("" is all).
func (db *DB) dropEvents(ctx context.Context, place, before string) error {
	for {
		p, err := db.kv.List(ctx, Range{Prefix: place, Limit: MaxOps / 2, KeysOnly: true})
		if err != nil {
			return err
		}
		var t Txn
		for _, e := range p.Entries {
			id := e.Key[len(place):]
			if before != "" && id >= before {
				break
			}
			t.Deletes = append(t.Deletes, e.Key, prefixEvent+id)
		}
		if len(t.Deletes) == 0 {
			return nil
		}
		if _, err := db.kv.Txn(ctx, t); err != nil {
			return err
		}
	}
}

// trimTotal removes the oldest events beyond the bound.
func (db *DB) trimTotal(ctx context.Context) error {
	total := 0
	err := db.each(ctx, Range{Prefix: prefixEvent, KeysOnly: true, Limit: DefaultPage}, func(Entry) error {
		total++
		return nil
	})
	if err != nil {
		return err
	}
	for total > db.opts.MaxEvents {
		p, err := db.kv.List(ctx, Range{Prefix: prefixEvent, Limit: min(MaxOps/2, total-db.opts.MaxEvents)})
		if err != nil || len(p.Entries) == 0 {
			return err
		}
		var t Txn
		for _, e := range p.Entries {
			var ev workflow.Event
			if err := db.decode(e.Key, e.Value, &ev); err != nil {
				return err
			}
			t.Deletes = append(t.Deletes, e.Key)
			if ev.Hardware != "" {
				t.Deletes = append(t.Deletes, keyInBoot(ev.Hardware, ev.Boot, ev.ID))
			}
		}
		if _, err := db.kv.Txn(ctx, t); err != nil {
			return err
		}
		total -= len(p.Entries)
	}
	return nil
}
