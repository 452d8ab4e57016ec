package bolt

import (
	"context"

	"github.com/rackstrap/rackstrap/store"
)

// request is one transaction, or the end of a session.
type request struct {
	txn    store.Txn
	expire uint64 // session whose keys go, instead of txn
	rev    uint64
	more   bool // expire: there are keys left
}

// Txn implements store.KV.
func (kv *KV) Txn(ctx context.Context, t store.Txn) (uint64, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	size := 0
	for _, p := range t.Puts {
		size += len(p.Key) + len(p.Value)
	}
	r := &request{txn: t}
	if err := kv.writer.submit(ctx, r, size); err != nil {
		return 0, err
	}
	return r.rev, nil
}

// commit writes a group in one bbolt transaction. Each request is judged by
// itself, after those before it; one that is refused writes nothing and the
// others go on. When the file refuses, all are told so: a conflict with a
// neighbour that was not written after all would be a lie.
func (kv *KV) commit(group []*pending[*request]) {
	if err := kv.commitGroup(group); err != nil {
		err = kv.diskError(err)
		for _, p := range group {
			p.err = err
		}
		return
	}
	kv.mu.Lock()
	close(kv.wake)
	kv.wake = make(chan struct{})
	kv.mu.Unlock()
}

func (kv *KV) commitGroup(group []*pending[*request]) error {
	tx, err := kv.db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a no-op after Commit
	w := newWriteTx(tx, kv.log, kv.alive)
	for _, p := range group {
		r := p.req
		if r.expire != 0 {
			r.txn.Deletes, r.more = w.ownedKeys(r.expire, store.MaxOps)
		}
		r.rev, p.err = w.apply(&r.txn)
		if w.err != nil {
			return w.err
		}
	}
	if !w.dirty { // nothing changed: no need to touch the disk
		return nil
	}
	if err := w.trimLog(kv.opts.LogRevisions, kv.opts.LogBytes); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	kv.log = w.log
	return nil
}
