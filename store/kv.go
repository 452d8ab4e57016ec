package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// Limits that every backend enforces, so that what is written on one can be
// written on the other. etcd's own defaults are 128 operations and 1.5 MiB a
// request.
const (
	// MaxOps bounds the compares, and separately the puts and deletes together, of
	// one transaction.
	MaxOps = 100
	// MaxValue bounds one value, in bytes.
	MaxValue = 1 << 20
	// MaxTxn bounds the keys and values of one transaction, in bytes.
	MaxTxn = MaxValue + 256<<10
	// MaxKey bounds one key, in bytes.
	MaxKey = 512
)

// KV is an ordered map from keys to values with revisions.
//
// Revisions. Every transaction that changes something is given one revision when
// it commits: larger than all before it, not necessarily by one. The revision of
// a key is that of the transaction that last put it; a key that was deleted and
// put again gets a new, larger one. An empty store has revision 0.
//
// Reads are linearizable: they see every transaction that was acknowledged before
// they began. Each Get and each List sees one revision; two calls may see two.
//
// Values and keys that are returned belong to the caller; those that are passed
// in may be changed by the caller after the call.
//
// All methods may be called concurrently. After Close they return ErrClosed.
// A ctx that is done before the call changed anything makes it return the ctx's
// error. A Txn that returns any other error than ErrConflict, a *LimitError,
// ErrSessionExpired or ErrClosed may, on a backend that is reached over a network,
// have been committed all the same.
type KV interface {
	// Get reads one key. Entry.Revision is 0 where there is no such key.
	Get(ctx context.Context, key string) (Entry, error)

	// List reads the keys that begin with r.Prefix, in byte order.
	List(ctx context.Context, r Range) (Page, error)

	// Txn compares, then writes: if every key in t.If has the revision named there
	// (0 is "absent"), all puts and deletes are done, durably, and the revision of
	// the transaction is returned; else nothing is done and a *ConflictError names
	// the first key that differs. Deleting an absent key is not an error. A
	// transaction that changes nothing returns the store's current revision. A
	// transaction beyond the limits is refused with a *LimitError.
	Txn(ctx context.Context, t Txn) (uint64, error)

	// Watch yields every transaction of revision from and later that touched keys
	// with the prefix, in order, each once and as a whole (less the changes outside
	// the prefix). From 0 is "from now on": later than any transaction acknowledged
	// before the call. It blocks for more until ctx is done, which ends it without
	// an error. ErrCompacted ends it when changes since from are no longer kept, or
	// when from is beyond the next revision (a cursor from another life of this
	// store); ErrClosed when the store is closed. A slow reader holds up nobody.
	Watch(ctx context.Context, prefix string, from uint64) iter.Seq2[Batch, error]

	// Revision is the newest revision.
	Revision(ctx context.Context) (uint64, error)

	// Session begins a session that lasts ttl beyond its last Renew. Sessions own
	// the keys that are put with their ID, and end with the process that holds them
	// at the latest ttl later.
	Session(ctx context.Context, ttl time.Duration) (Session, error)

	// Close waits for running transactions and ends watches and sessions.
	Close() error
}

// Session is ownership with a time to live.
type Session interface {
	// ID goes into Put.Session.
	ID() uint64
	// Renew makes the session last its ttl from now; ErrSessionExpired when it is
	// over already.
	Renew(ctx context.Context) error
	// Done is closed when the session is over.
	Done() <-chan struct{}
	// Close ends the session: its keys are deleted in a transaction of their own
	// (several where they are more than MaxOps) before it returns.
	Close(ctx context.Context) error
}

// Entry is one key as it was read.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64 // of the last put; 0 is "absent"
	Session  uint64 // owner; 0 is none
}

// Range says what List reads.
type Range struct {
	Prefix string
	// After, if not empty, skips keys up to and including it (from it on, where
	// Descend is set). It need not exist.
	After string
	// Limit bounds the entries; 0 is 1,000, the most is 10,000. A page also ends
	// early where its values exceed 8 MiB, but has at least one entry.
	Limit int
	// KeysOnly leaves the values out.
	KeysOnly bool
	// Descend reads from the last key to the first.
	Descend bool
}

// Page limits of List.
const (
	DefaultPage  = 1000
	MaxPage      = 10000
	MaxPageBytes = 8 << 20
)

// Page is what List found.
type Page struct {
	Entries []Entry
	// More: there are further keys; go on with After set to the last key.
	More bool
	// Revision of the store that the page shows.
	Revision uint64
}

// Txn is one transaction. A key may occur once in Puts and Deletes together.
type Txn struct {
	If      []Compare
	Puts    []Put
	Deletes []string
}

// Compare demands the revision of a key; 0 demands that it is absent.
type Compare struct {
	Key      string
	Revision uint64
}

// Put writes a key. Session, if not 0, makes that session its owner; a put with
// Session 0 leaves the key without owner.
type Put struct {
	Key     string
	Value   []byte
	Session uint64
}

// Batch is one transaction as a watch shows it.
type Batch struct {
	Revision uint64
	Changes  []KeyChange
}

// KeyChange is one key that a transaction put or deleted.
type KeyChange struct {
	Key     string
	Value   []byte // nil where Deleted
	Deleted bool
}

// Backuper is a KV that can write a consistent copy of itself while in use.
type Backuper interface {
	// Backup writes the copy to w and returns its size in bytes.
	Backup(ctx context.Context, w io.Writer) (int64, error)
}
