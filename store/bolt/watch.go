package bolt

import (
	"context"
	"encoding/binary"
	"iter"
	"strings"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

// A watch reads the log in steps of at most this much.
const (
	watchStep      = 256
	watchStepBytes = 1 << 20
)

// Watch implements store.KV. A watcher is a cursor into the log: the writer wakes
// it and never waits for it.
func (kv *KV) Watch(ctx context.Context, prefix string, from uint64) iter.Seq2[store.Batch, error] {
	if from == 0 {
		rev, err := kv.Revision(ctx)
		if err != nil {
			return func(yield func(store.Batch, error) bool) { endWatch(ctx, err, yield) }
		}
		from = rev + 1
	}
	return func(yield func(store.Batch, error) bool) {
		next := from
		for {
			kv.mu.Lock()
			wake := kv.wake
			kv.mu.Unlock()
			batches, after, err := kv.readLog(ctx, prefix, next)
			if err != nil {
				endWatch(ctx, err, yield)
				return
			}
			for _, b := range batches {
				if ctx.Err() != nil || !yield(b, nil) {
					return
				}
			}
			if after > next {
				next = after
				continue
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return
			case <-kv.writer.quit:
				yield(store.Batch{}, store.ErrClosed)
				return
			}
		}
	}
}

// endWatch reports err, unless it is the caller's own cancel.
func endWatch(ctx context.Context, err error, yield func(store.Batch, error) bool) {
	if ctx.Err() == nil {
		yield(store.Batch{}, err)
	}
}

// readLog reads the changes of revisions from and later, and the revision to go on
// with.
func (kv *KV) readLog(ctx context.Context, prefix string, from uint64) (out []store.Batch, next uint64, err error) {
	next = from
	err = kv.view(ctx, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketLog)
		newest := b.Sequence()
		if from == newest+1 {
			return nil
		}
		c := b.Cursor()
		k, v := c.Seek(be64(from))
		// Revisions have no gaps here, so a missing one was trimmed, or never was.
		if k == nil || binary.BigEndian.Uint64(k) != from {
			return store.ErrCompacted
		}
		size := 0
		for n := 0; k != nil && n < watchStep && size < watchStepBytes; n++ {
			size += len(v)
			batch := store.Batch{Revision: binary.BigEndian.Uint64(k)}
			changes, err := readChanges(v)
			if err != nil {
				return err
			}
			for _, ch := range changes {
				if strings.HasPrefix(ch.Key, prefix) {
					batch.Changes = append(batch.Changes, ch)
				}
			}
			if len(batch.Changes) > 0 {
				out = append(out, batch)
			}
			next = batch.Revision + 1
			k, v = c.Next()
		}
		return nil
	})
	return out, next, err
}
