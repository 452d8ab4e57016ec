package bolt

import (
	"bytes"
	"encoding/binary"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

var (
	bucketMeta     = []byte("meta")
	bucketKV       = []byte("kv")
	bucketLog      = []byte("log")
	bucketSessions = []byte("sessions")
	bucketLeases   = []byte("leases")
)

// header is what precedes a value in the kv bucket: revision and session.
const header = 16

func splitValue(v []byte) (rev, session uint64, value []byte) {
	return binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), v[header:]
}

func joinValue(rev, session uint64, value []byte) []byte {
	b := make([]byte, header, header+len(value))
	binary.BigEndian.PutUint64(b, rev)
	binary.BigEndian.PutUint64(b[8:], session)
	return append(b, value...)
}

// writeTx is one bbolt transaction in which a group is applied.
type writeTx struct {
	kv, logb, sessions *bbolt.Bucket
	alive              func(session uint64) bool
	rev                uint64
	log                logStats
	dirty              bool
	// err is set when the file itself failed; the group cannot be committed.
	err error
}

func newWriteTx(tx *bbolt.Tx, log logStats, alive func(uint64) bool) *writeTx {
	w := &writeTx{
		kv: tx.Bucket(bucketKV), logb: tx.Bucket(bucketLog), sessions: tx.Bucket(bucketSessions),
		alive: alive, log: log,
	}
	w.logb.FillPercent = 1 // appended to only: full pages
	w.rev = w.logb.Sequence()
	return w
}

// apply judges one transaction and writes it. An error means that it wrote nothing,
// unless w.err is set.
func (w *writeTx) apply(t *store.Txn) (uint64, error) {
	for _, c := range t.If {
		var have uint64
		if v := w.kv.Get([]byte(c.Key)); v != nil {
			have, _, _ = splitValue(v)
		}
		if have != c.Revision {
			return 0, &store.ConflictError{Key: c.Key, Want: c.Revision, Have: have}
		}
	}
	for _, p := range t.Puts {
		if p.Session != 0 && !w.alive(p.Session) {
			return 0, store.ErrSessionExpired
		}
	}
	rev := w.rev + 1
	var rec []byte
	for _, p := range t.Puts {
		w.put(p, rev)
		rec = appendPut(rec, p.Key, p.Value)
	}
	for _, k := range t.Deletes {
		if w.delete(k) {
			rec = appendDelete(rec, k)
		}
	}
	if rec == nil || w.err != nil {
		return w.rev, w.err
	}
	w.try(w.logb.Put(be64(rev), rec))
	w.try(w.logb.SetSequence(rev))
	w.log.add(len(rec))
	w.rev, w.dirty = rev, true
	return rev, w.err
}

func (w *writeTx) try(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writeTx) put(p store.Put, rev uint64) {
	key := []byte(p.Key)
	if old := w.kv.Get(key); old != nil {
		w.disown(old, key)
	}
	if p.Session != 0 {
		w.try(w.sessions.Put(append(be64(p.Session), key...), nil))
	}
	w.try(w.kv.Put(key, joinValue(rev, p.Session, p.Value)))
}

func (w *writeTx) delete(k string) bool {
	key := []byte(k)
	old := w.kv.Get(key)
	if old == nil {
		return false
	}
	w.disown(old, key)
	w.try(w.kv.Delete(key))
	return true
}

func (w *writeTx) disown(old, key []byte) {
	if _, session, _ := splitValue(old); session != 0 {
		w.try(w.sessions.Delete(append(be64(session), key...)))
	}
}

// ownedKeys lists up to limit keys of a session, and whether there are more.
func (w *writeTx) ownedKeys(session uint64, limit int) (keys []string, more bool) {
	prefix := be64(session)
	c := w.sessions.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		if len(keys) == limit {
			return keys, true
		}
		keys = append(keys, string(k[8:]))
	}
	return keys, false
}
