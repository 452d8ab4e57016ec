package bolt

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

// parallel runs fn b.N times in all, from n goroutines.
func parallel(b *testing.B, n int, fn func(i int64) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "durable/s")
}

var value = make([]byte, 256)

// BenchmarkTxn is durable transitions as many callers see them, ours beside plain
// bbolt.
func BenchmarkTxn(b *testing.B) {
	for _, n := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("ours/callers=%d", n), func(b *testing.B) {
			kv := open(b, b.TempDir(), Options{})
			parallel(b, n, func(i int64) error {
				_, err := kv.Txn(b.Context(), store.Txn{Puts: []store.Put{{Key: fmt.Sprintf("k%d", i%10_000), Value: value}}})
				return err
			})
		})
		for name, update := range map[string]func(*bbolt.DB, func(*bbolt.Tx) error) error{
			"bbolt.Update": (*bbolt.DB).Update, "bbolt.Batch": (*bbolt.DB).Batch,
		} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, n), func(b *testing.B) {
				db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = db.Close() }()
				parallel(b, n, func(i int64) error {
					return update(db, func(tx *bbolt.Tx) error {
						bk, err := tx.CreateBucketIfNotExists([]byte("b"))
						if err != nil {
							return err
						}
						return bk.Put(fmt.Appendf(nil, "k%d", i%10_000), value)
					})
				})
			})
		}
	}
}

// BenchmarkLease is durable leases: a rack that powers on.
func BenchmarkLease(b *testing.B) {
	for _, n := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			kv := open(b, b.TempDir(), Options{})
			parallel(b, n, func(i int64) error { return kv.Leases().Put(b.Context(), lease(int(i%10_000))) })
		})
	}
}
