package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	bbolt "go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"

	"github.com/rackstrap/rackstrap/store"
)

var (
	_ store.KV       = (*KV)(nil)
	_ store.Backuper = (*KV)(nil)
)

// Options of Open. The zero value has the defaults.
type Options struct {
	// LockTimeout is how long Open waits for another process to let go of the file;
	// 1 s where 0.
	LockTimeout time.Duration
	// LogRevisions and LogBytes bound the change log, and so how old a watch may
	// begin; 100,000 transactions and 64 MiB where 0.
	LogRevisions int
	LogBytes     int64
	// JournalBytes is the size at which the lease journal is folded into the file;
	// 8 MiB where 0.
	JournalBytes int64
	// Log is told of repairs at start and of failed background work; discarded
	// where nil.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	if o.LogRevisions <= 0 {
		o.LogRevisions = 100_000
	}
	if o.LogBytes <= 0 {
		o.LogBytes = 64 << 20
	}
	if o.JournalBytes <= 0 {
		o.JournalBytes = 8 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// KV is a store.KV in one bbolt file.
type KV struct {
	path string
	opts Options
	db   *bbolt.DB

	writer *committer[*request]
	log    logStats // the writer's

	mu       sync.Mutex
	wake     chan struct{} // closed and replaced after each commit
	sessions map[uint64]*session
	lastID   uint64

	leases *leases
	once   sync.Once
	lean   chan struct{} // closed when stayLean has ended
}

// mmapSize is the address space that is reserved at once. bbolt cannot grow its
// mapping while somebody reads, so a backup of a growing file would stop all
// writers; 4 GiB of addresses cost nothing.
const mmapSize = 4 << 30

// growth is the step in which the file grows; each step is one more sync.
const growth = 4 << 20

// Open opens or makes the file and brings it to the present layout. It fails,
// naming the process, while another one has the file open; it refuses a file of a
// newer layout and leaves it as it is.
func Open(path string, opts Options) (*KV, error) {
	opts = opts.withDefaults()
	bopts := &bbolt.Options{
		Timeout:         opts.LockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		NoFreelistSync:  true, // one page write less a commit; found again at start
		NoStatistics:    true,
		PreLoadFreelist: true,
	}
	if ^uint(0)>>32 != 0 {
		bopts.InitialMmapSize = mmapSize
	}
	db, err := bbolt.Open(path, 0o600, bopts)
	if err != nil {
		return nil, openError(path, err)
	}
	db.AllocSize = growth
	kv := &KV{
		path: path, opts: opts, db: db,
		writer:   newCommitter[*request](),
		wake:     make(chan struct{}),
		sessions: map[uint64]*session{},
		lean:     make(chan struct{}),
	}
	if err := kv.start(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	go kv.writer.run(kv.commit)
	go kv.stayLean()
	return kv, nil
}

func (kv *KV) start() error {
	if err := migrate(kv.db, kv.path, migrations()); err != nil {
		return err
	}
	if err := kv.dropOwned(); err != nil {
		return kv.diskError(err)
	}
	if err := kv.db.View(func(tx *bbolt.Tx) error {
		kv.log = statLog(tx)
		return nil
	}); err != nil {
		return err
	}
	var err error
	kv.leases, err = openLeases(kv.db, kv.path, kv.opts)
	return err
}

// Leases is the lease journal beside the file; it lives as long as the KV.
func (kv *KV) Leases() store.Leases { return kv.leases }

// Path is the file.
func (kv *KV) Path() string { return kv.path }

// Close commits what is under way, folds the lease journal and closes the file.
func (kv *KV) Close() error {
	var err error
	kv.once.Do(func() {
		kv.writer.close()
		<-kv.lean
		kv.endSessions()
		err = errors.Join(kv.leases.close(), kv.db.Close())
	})
	return err
}

// Backup writes a consistent copy of the file, leases included, while all others
// go on reading and writing.
func (kv *KV) Backup(ctx context.Context, w io.Writer) (int64, error) {
	if err := kv.leases.fold(); err != nil {
		return 0, fmt.Errorf("backup of %s: %w", kv.path, kv.diskError(err))
	}
	var n int64
	err := kv.view(ctx, func(tx *bbolt.Tx) error {
		var err error
		n, err = tx.WriteTo(ctxWriter{ctx, w})
		return err
	})
	if err != nil {
		return n, fmt.Errorf("backup of %s: %w", kv.path, err)
	}
	return n, nil
}

// ctxWriter makes a long copy stop when nobody waits for it any more.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c ctxWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// view runs fn in a read transaction.
func (kv *KV) view(ctx context.Context, fn func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if kv.writer.closed() {
		return store.ErrClosed
	}
	err := kv.db.View(fn)
	if errors.Is(err, bberrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	return err
}

// diskError says what to do about a failed write.
func (kv *KV) diskError(err error) error {
	return diskError(kv.path, err)
}

func diskError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("write %s: %w (free some space on that file system; reading goes on, nothing was half written): %w", path, store.ErrNoSpace, err)
	}
	return fmt.Errorf("write %s: %w", path, err)
}

func be64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
