package bolt

import (
	"bytes"
	"context"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

// Get implements store.KV.
func (kv *KV) Get(ctx context.Context, key string) (store.Entry, error) {
	e := store.Entry{Key: key}
	err := kv.view(ctx, func(tx *bbolt.Tx) error {
		if v := tx.Bucket(bucketKV).Get([]byte(key)); v != nil {
			e = entry([]byte(key), v, false)
		}
		return nil
	})
	return e, err
}

// Revision implements store.KV.
func (kv *KV) Revision(ctx context.Context) (uint64, error) {
	var rev uint64
	err := kv.view(ctx, func(tx *bbolt.Tx) error {
		rev = tx.Bucket(bucketLog).Sequence()
		return nil
	})
	return rev, err
}

// entry copies: what bbolt returns is dead after the transaction.
func entry(k, v []byte, keyOnly bool) store.Entry {
	rev, session, value := splitValue(v)
	e := store.Entry{Key: string(k), Revision: rev, Session: session}
	if !keyOnly {
		e.Value = append(make([]byte, 0, len(value)), value...)
	}
	return e
}

// List implements store.KV.
func (kv *KV) List(ctx context.Context, r store.Range) (store.Page, error) {
	limit := r.Limit
	if limit <= 0 {
		limit = store.DefaultPage
	}
	limit = min(limit, store.MaxPage)
	var page store.Page
	err := kv.view(ctx, func(tx *bbolt.Tx) error {
		page.Revision = tx.Bucket(bucketLog).Sequence()
		c := tx.Bucket(bucketKV).Cursor()
		k, v := first(c, r)
		next := c.Next
		if r.Descend {
			next = c.Prev
		}
		size := 0
		for ; k != nil && bytes.HasPrefix(k, []byte(r.Prefix)); k, v = next() {
			if len(page.Entries) == limit || size > store.MaxPageBytes {
				page.More = true
				break
			}
			if !r.KeysOnly {
				size += len(v)
			}
			page.Entries = append(page.Entries, entry(k, v, r.KeysOnly))
		}
		return nil
	})
	return page, err
}

// first moves the cursor to the first key of the range.
func first(c *bbolt.Cursor, r store.Range) (k, v []byte) {
	if !r.Descend {
		if r.After < r.Prefix {
			return c.Seek([]byte(r.Prefix))
		}
		if k, v = c.Seek([]byte(r.After)); k != nil && string(k) == r.After {
			return c.Next()
		}
		return k, v
	}
	end := successor(r.Prefix)
	if r.After != "" && (end == nil || r.After < string(end)) {
		end = []byte(r.After)
	}
	if end == nil {
		return c.Last()
	}
	if k, _ = c.Seek(end); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// successor is the first key after all that begin with prefix; nil is "none".
func successor(prefix string) []byte {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return nil
}
