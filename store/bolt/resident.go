package bolt

import (
	"time"
	"unsafe"

	bbolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// unmapEvery is how often the pages of the file that were read are given back.
const unmapEvery = 10 * time.Second

// stayLean gives pages back until the store is closed: at once those of Open, which
// looks at the whole file for the pages that are free.
func (kv *KV) stayLean() {
	defer close(kv.lean)
	tick := time.NewTicker(unmapEvery)
	defer tick.Stop()
	for {
		if err := kv.giveBack(); err != nil {
			kv.opts.Log.Debug("pages of the file stay in our memory", "file", kv.path, "err", err)
		}
		select {
		case <-tick.C:
		case <-kv.writer.quit:
			return
		}
	}
}

// giveBack takes the file's pages out of our address space. What was read once, by a
// walk over all events or a backup, would else count as our memory for good. The
// kernel keeps the pages in its cache as long as it has room, so reading one again
// costs a minor fault (madvise(2): MADV_DONTNEED on a shared file mapping loses
// nothing). The read transaction keeps bbolt from moving the mapping meanwhile.
func (kv *KV) giveBack() error {
	return kv.db.View(func(tx *bbolt.Tx) error {
		at := kv.db.Info().Data
		// the address is the kernel's and not in Go's heap: it does not move
		return unix.Madvise(unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), tx.Size()), unix.MADV_DONTNEED)
	})
}
