package bolt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/hardware"
)

// foldStep bounds the leases of one transaction, so that a fold never holds up the
// writer of the file for long.
const foldStep = 1000

// load reads the bucket, then the journal files in the order they were written.
func (l *leases) load() error {
	err := l.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketLeases).ForEach(func(k, v []byte) error {
			var lease hardware.Lease
			if err := json.Unmarshal(v, &lease); err != nil {
				return fmt.Errorf("lease %q: %w", k, err)
			}
			l.all[leaseKey{lease.Subnet, lease.MAC}] = lease
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", l.path, err)
	}
	gens, err := journalFiles(l.path)
	if err != nil {
		return err
	}
	for _, gen := range gens {
		name := journalName(l.path, gen)
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		n, err := readJournal(b, l.show)
		if err != nil {
			return fmt.Errorf("%s: %w (move it away if it is not ours)", name, err)
		}
		if n < len(b) {
			l.log.Warn("lease journal ends in a record that was never acknowledged; it is dropped", "file", name, "bytes", len(b)-n)
		}
		l.file.gen = gen
	}
	return nil
}

// foldLoop folds when the journal is full. It ends with the writer.
func (l *leases) foldLoop() {
	defer close(l.ended)
	for {
		select {
		case <-l.full:
			if err := l.fold(); err != nil {
				l.log.Warn("lease journal is not folded into the database", "err", diskError(l.path, err))
			}
		case <-l.writer.quit:
			return
		}
	}
}

// fold writes the leases of the present journal into the bucket and removes its
// files. Writing goes on meanwhile, in a new file.
func (l *leases) fold() error {
	l.folding.Lock()
	defer l.folding.Unlock()
	var rot rotation
	if err := l.writer.submit(context.Background(), &leaseRequest{rotate: &rot}, 0); err != nil {
		return err
	}
	for chunk := range slices.Chunk(rot.dirty, foldStep) {
		if err := l.db.Update(func(tx *bbolt.Tx) error { return putLeases(tx, chunk) }); err != nil {
			l.mu.Lock()
			for i := range rot.dirty {
				l.dirty[rot.dirty[i].key()] = struct{}{}
			}
			l.mu.Unlock()
			return err
		}
	}
	gens, err := journalFiles(l.path)
	if err != nil {
		return err
	}
	for _, gen := range gens {
		if gen <= rot.gen {
			err = errors.Join(err, os.Remove(journalName(l.path, gen)))
		}
	}
	return err
}

// rotate runs in the writer: what comes later goes to a later file.
func (l *leases) rotate(rot *rotation) {
	l.file.close()
	rot.gen = l.file.gen
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.dirty {
		lease, ok := l.all[k]
		if !ok {
			lease = hardware.Lease{Subnet: k.subnet, MAC: k.mac}
		}
		rot.dirty = append(rot.dirty, leaseRecord{Lease: lease, Gone: !ok})
	}
	clear(l.dirty)
}

func putLeases(tx *bbolt.Tx, recs []leaseRecord) error {
	b := tx.Bucket(bucketLeases)
	for i := range recs {
		k := append([]byte(recs[i].Lease.Subnet+"\x00"), recs[i].Lease.MAC[:]...)
		if recs[i].Gone {
			if err := b.Delete(k); err != nil {
				return err
			}
			continue
		}
		v, err := json.Marshal(recs[i].Lease)
		if err != nil {
			return err
		}
		if old := b.Get(k); bytes.Equal(old, v) {
			continue
		}
		if err := b.Put(k, v); err != nil {
			return err
		}
	}
	return nil
}

// Journal files are named <database>.leases-<generation>.
func journalName(path string, gen uint64) string { return fmt.Sprintf("%s.leases-%d", path, gen) }

// journalFiles lists the generations that exist, oldest first.
func journalFiles(path string) ([]uint64, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var gens []uint64
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".leases-"); ok {
			if gen, err := strconv.ParseUint(n, 10, 64); err == nil {
				gens = append(gens, gen)
			}
		}
	}
	slices.Sort(gens)
	return gens, nil
}
