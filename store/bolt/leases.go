package bolt

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
)

var _ store.Leases = (*leases)(nil)

// leases is the journal and the leases themselves, in memory. The bucket of the
// file is older than the journal; both together are the truth at start.
type leases struct {
	db   *bbolt.DB
	path string // of the database; the journal's files are named after it
	max  int64
	log  *slog.Logger

	writer *committer[*leaseRequest]
	file   journalFile // the writer's

	mu    sync.RWMutex
	all   map[leaseKey]hardware.Lease
	dirty map[leaseKey]struct{} // not in the bucket yet

	folding sync.Mutex
	full    chan struct{} // the journal has reached max
	ended   chan struct{}
}

// leaseRequest is one record, or the wish for a new journal file.
type leaseRequest struct {
	rec    leaseRecord
	frame  []byte
	rotate *rotation
}

// rotation is the writer's answer to a rotate: the records that only files before
// gen have.
type rotation struct {
	gen   uint64
	dirty []leaseRecord
}

func openLeases(db *bbolt.DB, path string, opts Options) (*leases, error) {
	l := &leases{
		db: db, path: path, max: opts.JournalBytes, log: opts.Log,
		writer: newCommitter[*leaseRequest](),
		all:    map[leaseKey]hardware.Lease{},
		dirty:  map[leaseKey]struct{}{},
		full:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}
	if err := l.load(); err != nil {
		return nil, err
	}
	go l.writer.run(l.commit)
	go l.foldLoop()
	if err := l.fold(); err != nil {
		// Not fatal: the journal files stay and have everything.
		l.log.Warn("lease journal is not folded into the database", "err", diskError(path, err))
	}
	return l, nil
}

// Put implements store.Leases.
func (l *leases) Put(ctx context.Context, lease hardware.Lease) error {
	return l.append(ctx, leaseRecord{Lease: lease})
}

// Delete implements store.Leases.
func (l *leases) Delete(ctx context.Context, subnet string, mac hardware.MAC) error {
	if _, ok := l.Get(subnet, mac); !ok {
		return nil
	}
	return l.append(ctx, leaseRecord{Lease: hardware.Lease{Subnet: subnet, MAC: mac}, Gone: true})
}

func (l *leases) append(ctx context.Context, rec leaseRecord) error {
	frame, err := appendRecord(nil, &rec)
	if err != nil {
		return err
	}
	return l.writer.submit(ctx, &leaseRequest{rec: rec, frame: frame}, len(frame))
}

// Get implements store.Leases.
func (l *leases) Get(subnet string, mac hardware.MAC) (hardware.Lease, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	lease, ok := l.all[leaseKey{subnet, mac}]
	return lease, ok
}

// List implements store.Leases.
func (l *leases) List() []hardware.Lease {
	l.mu.RLock()
	out := make([]hardware.Lease, 0, len(l.all))
	for _, lease := range l.all {
		out = append(out, lease)
	}
	l.mu.RUnlock()
	slices.SortFunc(out, func(a, b hardware.Lease) int {
		return cmp.Or(cmp.Compare(a.Subnet, b.Subnet), a.Addr.Compare(b.Addr), slices.Compare(a.MAC[:], b.MAC[:]))
	})
	return out
}

// commit makes a group durable with one write and one sync, then shows it.
func (l *leases) commit(group []*pending[*leaseRequest]) {
	var buf []byte
	for _, p := range group {
		buf = append(buf, p.req.frame...)
	}
	var err error
	if len(buf) > 0 {
		err = diskError(l.path, l.file.append(l.path, buf))
	}
	for _, p := range group {
		switch {
		case p.req.rotate != nil:
		case err != nil:
			p.err = err
		default:
			l.show(p.req.rec)
		}
	}
	for _, p := range group { // after the others: their records are in the old file
		if p.req.rotate != nil {
			l.rotate(p.req.rotate)
		}
	}
	if l.file.size > l.max {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// show makes a durable record visible.
func (l *leases) show(rec leaseRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rec.Gone {
		delete(l.all, rec.key())
	} else {
		l.all[rec.key()] = rec.Lease
	}
	l.dirty[rec.key()] = struct{}{}
}

// close folds what is left and ends the goroutines.
func (l *leases) close() error {
	err := l.fold()
	l.writer.close()
	<-l.ended
	l.file.close()
	if err != nil {
		l.log.Warn("lease journal is not folded into the database; it stays as it is", "err", diskError(l.path, err))
	}
	return nil
}
