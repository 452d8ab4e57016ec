package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Dry is a DB that reads what this one has and keeps what is written in memory: a
// dry run does all that the real one does, finds every conflict, also among its own
// writes, and leaves no trace. Throw it away afterwards. Its View shows this DB and
// nothing of what is written; its watches do neither.
func (db *DB) Dry() *DB {
	return &DB{kv: &overlay{KV: db.kv, written: map[string]Entry{}}, seal: db.seal, opts: db.opts, view: db.view, dry: true}
}

// overlay is a KV over another one, which it only reads.
type overlay struct {
	KV

	mu      sync.Mutex
	written map[string]Entry // Revision 0: deleted
	newest  uint64           // revision given last
}

var _ KV = (*overlay)(nil)

// errDry is for what a dry run has no use for.
var errDry = errors.New("not possible in a dry run")

// Get implements KV.
func (o *overlay) Get(ctx context.Context, key string) (Entry, error) {
	o.mu.Lock()
	e, ok := o.written[key]
	o.mu.Unlock()
	if ok {
		e.Value = slices.Clone(e.Value)
		return e, ctx.Err()
	}
	return o.KV.Get(ctx, key)
}

// List implements KV.
func (o *overlay) List(ctx context.Context, r Range) (Page, error) {
	for {
		p, err := o.KV.List(ctx, r)
		if err != nil {
			return p, err
		}
		last := ""
		if n := len(p.Entries); n > 0 {
			last = p.Entries[n-1].Key
		}
		o.mu.Lock()
		o.merge(&p, r, last)
		o.mu.Unlock()
		if len(p.Entries) > 0 || !p.More {
			return p, nil
		}
		r.After = last // all of the page is deleted
	}
}

// merge puts what was written in the range of the page into it; last is the last
// key that the page had.
func (o *overlay) merge(p *Page, r Range, last string) {
	p.Entries = slices.DeleteFunc(p.Entries, func(e Entry) bool {
		_, ok := o.written[e.Key]
		return ok
	})
	order := 1
	if r.Descend {
		order = -1
	}
	for key, e := range o.written {
		before := r.After != "" && order*strings.Compare(key, r.After) <= 0
		beyond := p.More && order*strings.Compare(key, last) > 0
		if e.Revision == 0 || !strings.HasPrefix(key, r.Prefix) || before || beyond {
			continue
		}
		e.Value = slices.Clone(e.Value)
		if r.KeysOnly {
			e.Value = nil
		}
		p.Entries = append(p.Entries, e)
	}
	slices.SortFunc(p.Entries, func(a, b Entry) int { return order * cmp.Compare(a.Key, b.Key) })
	p.Revision = max(p.Revision, o.newest)
}

// Txn implements KV.
func (o *overlay) Txn(ctx context.Context, t Txn) (uint64, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range t.If {
		e, ok := o.written[c.Key]
		if !ok {
			var err error
			if e, err = o.KV.Get(ctx, c.Key); err != nil {
				return 0, err
			}
		}
		if e.Revision != c.Revision {
			return 0, &ConflictError{Key: c.Key, Want: c.Revision, Have: e.Revision}
		}
	}
	rev, err := o.KV.Revision(ctx)
	if err != nil {
		return 0, err
	}
	rev = max(rev, o.newest)
	if len(t.Puts)+len(t.Deletes) == 0 {
		return rev, nil
	}
	o.newest = rev + 1
	for _, p := range t.Puts {
		o.written[p.Key] = Entry{Key: p.Key, Value: slices.Clone(p.Value), Revision: o.newest}
	}
	for _, k := range t.Deletes {
		o.written[k] = Entry{Key: k}
	}
	return o.newest, nil
}

// Revision implements KV.
func (o *overlay) Revision(ctx context.Context) (uint64, error) {
	rev, err := o.KV.Revision(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(rev, o.newest), err
}

// Session implements KV: there is none.
func (o *overlay) Session(context.Context, time.Duration) (Session, error) { return nil, errDry }

// Close implements KV; what is below stays open.
func (o *overlay) Close() error { return nil }
