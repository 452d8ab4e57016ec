package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

var _ workflow.Store = (*DB)(nil)

// Options of a DB. The zero value has the defaults.
type Options struct {
	// Leases are what ListLeases lists; none where nil.
	Leases Leases
	// Now is the clock; time.Now where nil.
	Now func() time.Time
	// Log is told of failed background work; discarded where nil.
	Log *slog.Logger
	// MaxEvents bounds the event log; 1,000,000 where 0. It is exceeded by a
	// twentieth at most before it is trimmed.
	MaxEvents int
	// KeepBoots is how many boots of each machine keep their events; 20 where 0.
	KeepBoots int
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 1_000_000
	}
	if o.KeepBoots <= 0 {
		o.KeepBoots = 20
	}
	return o
}

// DB is the typed store: records over a KV. All methods may be called
// concurrently; records that are returned belong to the caller. Beside the errors
// they name, methods return those of the KV.
type DB struct {
	kv      KV
	seal    *Seal
	opts    Options
	view    *View
	ids     ids          // of events
	written atomic.Int64 // events since the last trim
	ended   atomic.Int64 // claims since the last trim
	dry     bool         // see Dry
	taking  taking       // see Claim
	history history      // see Installs
	// installation is cached; see Installation.
	installation atomic.Pointer[string]
}

// Open makes a DB over kv with the key file at keyFile, which is made if the store
// is new. It loads the View.
func Open(ctx context.Context, kv KV, keyFile string, opts Options) (*DB, error) {
	e, err := kv.Get(ctx, keySealCheck)
	if err != nil {
		return nil, err
	}
	seal, err := sealFor(keyFile, e.Revision == 0)
	if err != nil {
		return nil, err
	}
	db, err := New(ctx, kv, seal, opts)
	if errors.Is(err, ErrWrongKey) {
		return nil, fmt.Errorf("%s: the store's secrets were sealed with another key (put the right key file back, or restore the backup that belongs to this one): %w", keyFile, err)
	}
	return db, err
}

// New makes a DB over kv: ErrWrongKey if the store was written with another key.
func New(ctx context.Context, kv KV, seal *Seal, opts Options) (*DB, error) {
	db := &DB{kv: kv, seal: seal, opts: opts.withDefaults()}
	if err := db.checkSeal(ctx); err != nil {
		return nil, err
	}
	db.view = newView(db)
	if err := db.view.load(ctx); err != nil {
		return nil, err
	}
	return db, nil
}

// checkSeal proves the key, or leaves the proof in a new store.
func (db *DB) checkSeal(ctx context.Context) error {
	for {
		e, err := db.kv.Get(ctx, keySealCheck)
		if err != nil {
			return err
		}
		if e.Revision != 0 {
			_, err := db.seal.Open(keySealCheck, e.Value)
			return err
		}
		_, err = db.kv.Txn(ctx, Txn{
			If:   []Compare{{keySealCheck, 0}},
			Puts: []Put{{Key: keySealCheck, Value: db.seal.Seal(keySealCheck, []byte("rackstrap"))}},
		})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// Run keeps the View up to date with other writers and trims the event log, until
// ctx is done. It returns nil then.
func (db *DB) Run(ctx context.Context) error {
	trimmed := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(trimmed)
		db.trimLoop(ctx)
	}()
	err := db.view.follow(ctx)
	cancel()
	<-trimmed
	return err
}

// View is the part of the store that hot paths read.
func (db *DB) View() *View { return db.view }

// ListLeases lists all DHCP leases.
func (db *DB) ListLeases(ctx context.Context) ([]hardware.Lease, error) {
	if db.opts.Leases == nil {
		return nil, ctx.Err()
	}
	return db.opts.Leases.List(), ctx.Err()
}

// Backup writes a consistent copy of the store to w while it is in use. What is
// sealed stays sealed: the key file is not in it.
func (db *DB) Backup(ctx context.Context, w io.Writer) (int64, error) {
	b, ok := db.kv.(Backuper)
	if !ok {
		return 0, fmt.Errorf("backup: this backend is backed up with its own tools")
	}
	return b.Backup(ctx, w)
}

// txn commits and shows the change to readers of the View before it returns.
func (db *DB) txn(ctx context.Context, t Txn) (uint64, error) {
	rev, err := db.kv.Txn(ctx, t)
	if err == nil && !db.dry {
		db.view.own(rev, t)
	}
	return rev, err
}

// retry decides and commits until no conflict is met: for decisions that read all
// they compare themselves. Every conflict means that somebody else got on.
func (db *DB) retry(ctx context.Context, decide func() (Txn, error)) (uint64, error) {
	for {
		t, err := decide()
		if err != nil {
			return 0, err
		}
		rev, err := db.txn(ctx, t)
		if !errors.Is(err, ErrConflict) {
			return rev, err
		}
	}
}

// sealed says which values are encrypted; see the list of keys.
func sealed(key string) bool {
	for _, p := range []string{prefixWorkflow, prefixTemplate, prefixRule, prefixToken, prefixSecret, keySealCheck} {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	_, what, ok := splitHardware(key)
	return ok && what == partSpec
}

// encode makes the value of a key.
func (db *DB) encode(key string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if sealed(key) {
		b = db.seal.Seal(key, b)
	}
	if len(b) > MaxValue {
		return nil, &LimitError{"bytes of " + key, len(b), MaxValue}
	}
	return b, nil
}

// decode reads what encode made.
func (db *DB) decode(key string, b []byte, v any) error {
	if sealed(key) {
		var err error
		if b, err = db.seal.Open(key, b); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// get reads one key into v and returns its revision; 0 is "absent".
func (db *DB) get(ctx context.Context, key string, v any) (uint64, error) {
	e, err := db.kv.Get(ctx, key)
	if err != nil || e.Revision == 0 {
		return 0, err
	}
	return e.Revision, db.decode(key, e.Value, v)
}

// each lists all keys with a prefix, page by page, each page consistent in itself.
func (db *DB) each(ctx context.Context, r Range, fn func(Entry) error) error {
	for {
		p, err := db.kv.List(ctx, r)
		if err != nil {
			return err
		}
		for _, e := range p.Entries {
			if err := fn(e); err != nil {
				return err
			}
		}
		if !p.More {
			return nil
		}
		r.After = p.Entries[len(p.Entries)-1].Key
	}
}

// named says which record an error is about.
func named(kind, name string, err error) error {
	return fmt.Errorf("%s %q: %w", kind, name, err)
}

// text reads an index value and its revision.
func (db *DB) text(ctx context.Context, key string) (string, uint64, error) {
	e, err := db.kv.Get(ctx, key)
	return string(e.Value), e.Revision, err
}

// IndexCursor is a cursor that HardwareIndex has reached. It may be a little older than
// what is shown, never newer: a commit has its revision before the View has it.
func (db *DB) IndexCursor() uint64 {
	db.view.mu.RLock()
	defer db.view.mu.RUnlock()
	return db.view.watched
}

// HardwareIndexOf are the machines of those names that there are, in that order, as
// HardwareIndex has them.
func (db *DB) HardwareIndexOf(names []string) []*hardware.Hardware {
	var out []*hardware.Hardware
	for _, name := range names {
		if h, ok := db.view.HardwareByName(name); ok {
			out = append(out, h)
		}
	}
	return out
}

// Active reports whether a workflow of the machine has not ended, from memory.
func (db *DB) Active(uid string) bool { return db.view.Active(uid) }

// LeaseOf is the newest lease that a MAC has in any Subnet and that is good at a time,
// from memory.
func (db *DB) LeaseOf(mac hardware.MAC, now time.Time) (hardware.Lease, bool) {
	var out hardware.Lease
	found := false
	if db.opts.Leases == nil {
		return out, false
	}
	for _, s := range db.view.Subnets() {
		l, ok := db.opts.Leases.Get(s.Meta.Name, mac)
		if ok && l.State(now) == hardware.LeaseActive && (!found || l.Updated.After(out.Updated)) {
			out, found = l, true
		}
	}
	return out, found
}

// HardwareIndex lists all machines, by name, as the View has them: a UserData that is
// not empty reads hardware.Redacted. They are shared and must not be changed.
func (db *DB) HardwareIndex() []*hardware.Hardware { return db.view.Hardware() }
