package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/workflow"
)

// rack fills a store with n machines of three racks and two sizes, each with
// twelve disks.
func rack(b *testing.B, db *store.DB, n int) {
	b.Helper()
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				h := machine(i + 1)
				h.Meta.Labels = map[string]string{"rack": fmt.Sprintf("r%d", i%3), "tier": "prod"}
				err := db.CreateHardware(b.Context(), h)
				f := &hardware.Facts{Arch: "amd64", CPUs: 32 << (i % 2), MemoryBytes: 128 << 30 << (i % 2), Vendor: "Acme", Product: "R1"}
				for d := range 12 {
					f.Disks = append(f.Disks, hardware.DiskFact{Path: fmt.Sprintf("/dev/nvme%dn1", d), Bytes: 2e12, Serial: fmt.Sprintf("S%d-%d", i, d), Transport: "nvme"})
				}
				m := &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{State: hardware.StateAvailable}}
				if err == nil {
					err = db.Commit(b.Context(), &workflow.Change{Machine: m, Facts: f})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkClaims is a claim and its end among 10,000 machines, asked by 100 at once.
func BenchmarkClaims(b *testing.B) {
	const machines, claimers = 10_000, 100
	db, _ := openDB(b, store.Options{})
	rack(b, db, machines)
	want := hardware.ClaimSpec{
		Owner: "bench", Selector: "tier=prod,rack in (r0,r1)",
		Requirements: hardware.Requirements{CPUs: 64, Memory: "256Gi", Disks: []hardware.DiskRequirement{{Count: 4, Size: "1Ti", Transport: "nvme"}}},
	}
	prefers := want
	prefers.Prefer = []hardware.Preference{{Selector: "rack=r1", Weight: 10}}
	var ids atomic.Int64
	run := func(b *testing.B, spec hardware.ClaimSpec) {
		var left atomic.Int64
		left.Store(int64(b.N))
		var wg sync.WaitGroup
		b.ResetTimer()
		for range claimers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					c := &hardware.Claim{Meta: hardware.Meta{Name: fmt.Sprintf("c%d", ids.Add(1))}, Spec: spec}
					got, _, err := db.Claim(b.Context(), c, everything)
					if err == nil {
						err = release(b.Context(), db, got.Status.UID)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
	}
	b.Run("any", func(b *testing.B) { run(b, hardware.ClaimSpec{Owner: "bench"}) })
	b.Run("requirements", func(b *testing.B) { run(b, want) })
	b.Run("preferences", func(b *testing.B) { run(b, prefers) })
	for i := range machines - claimers { // a full rack: as many free as there are claimers
		if _, _, err := db.Claim(b.Context(), claimOf(fmt.Sprintf("full%d", i)), everything); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("full rack", func(b *testing.B) { run(b, hardware.ClaimSpec{Owner: "bench"}) })
}
