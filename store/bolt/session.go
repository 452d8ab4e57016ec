package bolt

import (
	"context"
	"fmt"
	"sync"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

// session lives in this process only: the file belongs to one process, so when it
// ends nobody is left who could hold anything.
type session struct {
	kv    *KV
	id    uint64
	ttl   time.Duration
	timer *time.Timer

	mu   sync.Mutex
	over bool
	done chan struct{}
}

// Session implements store.KV.
func (kv *KV) Session(ctx context.Context, ttl time.Duration) (store.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("a session needs a time to live, not %v", ttl)
	}
	kv.mu.Lock()
	defer kv.mu.Unlock()
	if kv.writer.closed() {
		return nil, store.ErrClosed
	}
	kv.lastID++
	s := &session{kv: kv, id: kv.lastID, ttl: ttl, done: make(chan struct{})}
	s.timer = time.AfterFunc(ttl, s.expire)
	kv.sessions[s.id] = s
	return s, nil
}

func (kv *KV) alive(id uint64) bool {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	return kv.sessions[id] != nil
}

func (s *session) ID() uint64            { return s.id }
func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Renew(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || !s.timer.Stop() { // stopped too late: expire is about to run
		return store.ErrSessionExpired
	}
	s.timer.Reset(s.ttl)
	return nil
}

func (s *session) Close(ctx context.Context) error {
	s.end()
	return s.drop(ctx)
}

// expireRetry is how long an expired session's keys wait when the disk refuses.
const expireRetry = time.Second

func (s *session) expire() {
	s.end()
	for s.drop(context.Background()) != nil {
		t := time.NewTimer(expireRetry)
		select {
		case <-t.C:
		case <-s.kv.writer.quit: // the next start drops them
			t.Stop()
			return
		}
	}
}

// end makes the session own nothing more.
func (s *session) end() {
	s.kv.mu.Lock()
	delete(s.kv.sessions, s.id)
	s.kv.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	if !s.over {
		s.over = true
		close(s.done)
	}
}

// drop deletes the session's keys.
func (s *session) drop(ctx context.Context) error {
	for {
		r := &request{expire: s.id}
		if err := s.kv.writer.submit(ctx, r, 0); err != nil {
			return err
		}
		if !r.more {
			return nil
		}
	}
}

// endSessions is the part of Close that tells the holders.
func (kv *KV) endSessions() {
	kv.mu.Lock()
	all := make([]*session, 0, len(kv.sessions))
	for _, s := range kv.sessions {
		all = append(all, s)
	}
	kv.mu.Unlock()
	for _, s := range all {
		s.end()
	}
}

// dropOwned deletes, at start, what sessions of an earlier process owned.
func (kv *KV) dropOwned() error {
	return kv.db.Update(func(tx *bbolt.Tx) error {
		var keys []string
		c := tx.Bucket(bucketSessions).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			keys = append(keys, string(k[8:]))
		}
		if len(keys) == 0 {
			return nil
		}
		w := newWriteTx(tx, logStats{}, kv.alive)
		_, err := w.apply(&store.Txn{Deletes: keys})
		return err
	})
}
