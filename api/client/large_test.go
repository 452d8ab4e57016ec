package client_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/workflow"
)

// index is a store with many machines in memory only.
type index struct {
	*store.DB
	machines []*hardware.Hardware
}

func (i index) HardwareIndex() []*hardware.Hardware { return i.machines }

func largeIndex(db *store.DB, n int) index {
	out := index{DB: db}
	for i := range n {
		h := &hardware.Hardware{
			Meta:  hardware.Meta{Name: fmt.Sprintf("node-%05d", i), UID: workflow.NewID(time.Unix(int64(i), 0)), Revision: uint64(i + 1), Labels: map[string]string{"rack": fmt.Sprint("r", i/40), "tier": []string{"prod", "test"}[i%2], "row": "7"}},
			Spec:  hardware.Spec{UserData: hardware.Redacted, AssetTag: fmt.Sprint("TAG-", i)},
			Facts: &hardware.Facts{Vendor: "Dell Inc.", Product: "PowerEdge R660", Serial: fmt.Sprint("SER", i), CPUs: 64, MemoryBytes: 512 << 30},
		}
		h.Status.State = hardware.States()[i%4]
		for j := range 4 {
			h.Spec.Interfaces = append(h.Spec.Interfaces, hardware.NIC{MAC: hardware.MAC{2, byte(j), 0, 0, byte(i >> 8), byte(i)}})
			h.Facts.NICs = append(h.Facts.NICs, hardware.NICFact{Name: fmt.Sprint("eth", j), MAC: hardware.MAC{2, byte(j), 0, 0, byte(i >> 8), byte(i)}, Driver: "mlx5_core", Link: true, Mbps: 25000})
		}
		for j := range 8 {
			h.Facts.Disks = append(h.Facts.Disks, hardware.DiskFact{Path: fmt.Sprint("/dev/nvme", j, "n1"), Bytes: 3840 << 30, Serial: fmt.Sprint("D", i, j), Model: "KIOXIA CM7", Transport: "nvme"})
		}
		out.machines = append(out.machines, h)
	}
	return out
}

// BenchmarkLists: what a list of 10,000 machines costs in the handler.
func BenchmarkLists(b *testing.B) {
	d := start(b)
	h := rest.New(rest.Deps{Records: largeIndex(d.db, 10_000), Engine: d.e, Images: d.images, Logs: d.logs, Log: discard()})
	for _, q := range []string{"limit=100", "limit=100&sort=-since", "selector=rack%3Dr77", "selector=rack+in+(r1,r2),tier!%3Dtest&state=available&limit=100", "q=ser999&limit=100", "limit=1000", ""} {
		b.Run(q, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				w := httptest.NewRecorder()
				w.Body = nil
				h.ServeHTTP(discarding{w}, httptest.NewRequest("GET", api.Base+"/hardware?"+q, nil))
				if w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// discarding keeps no body.
type discarding struct{ *httptest.ResponseRecorder }

func (discarding) Write(p []byte) (int, error) { return io.Discard.Write(p) }
