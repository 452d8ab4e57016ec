package dhcp

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
)

// journal is the real lease journal as DHCP sees it.
type journal struct {
	store.Leases
	writes int
}

func (j *journal) Confirm(ctx context.Context, l hardware.Lease) error {
	j.writes++
	return j.Put(ctx, l)
}

func (j *journal) Delete(ctx context.Context, subnet string, mac hardware.MAC) error {
	j.writes++
	return j.Leases.Delete(ctx, subnet, mac)
}

// diskUse is what the database and its journal take.
func diskUse(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		i, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += i.Size()
	}
	return n
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// 100,000 MACs that nobody knows, a thousand a second, and fifty, which is below the rate
// at which strangers are looked at: through handle, onto the real journal.
func TestFlood(t *testing.T) {
	const macs = 100_000
	for _, tt := range []struct {
		name    string
		every   time.Duration
		request bool
		writes  int // at most
	}{
		{"DISCOVER", time.Millisecond, false, 0},
		{"DISCOVER and REQUEST", time.Millisecond, true, 200},
		{"below the rate", 20 * time.Millisecond, true, 1200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newPoolDesk(t, []string{"10.77.0.10-10.77.0.249"}, 1, 2)
			dir := t.TempDir()
			kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer kv.Close()
			j := &journal{Leases: kv.Leases()}
			d.Leases = j
			d.transmit = func(_ *port, _ Destination, _ netip.Addr, b []byte) error {
				p, err := dhcpv4.FromBytes(b)
				d.sent = append(d.sent[:0], p)
				return err
			}
			// A machine's lease ends long before the flood does.
			mine := d.lease(1)
			d.now = d.now.Add(time.Hour)
			before, disk, lent := heapBytes(), diskUse(t, dir), j.writes
			start := time.Now()
			for i := range macs {
				d.flood(t, 1000+i, tt.request)
				d.now = d.now.Add(tt.every)
			}
			took := time.Since(start)
			grown, more, wrote := heapBytes()-before, diskUse(t, dir)-disk, j.writes-lent
			u := d.Use(d.net)
			t.Logf("%v a MAC, heap %+d KiB, disk %+d KiB, %d writes, %d leases, %+v", took/macs, grown>>10, more>>10, wrote, len(j.List()), u)
			if grown > 16<<20 || more > 16<<20 || wrote > tt.writes || len(j.List()) > u.Size {
				t.Errorf("heap %+d, disk %+d bytes, %d writes, %d leases", grown, more, wrote, len(j.List()))
			}
			if u.Used+u.Offered > (u.Size+1)/2 {
				t.Errorf("strangers have %d of %d", u.Used+u.Offered, u.Size)
			}
			if a := d.lease(1); a != mine {
				t.Errorf("a machine had %s and gets %s", mine, a)
			}
			d.lease(2) // a machine that comes in the flood for the first time
		})
	}
}

// flood is one MAC that asks once.
func (d *poolDesk) flood(t *testing.T, i int, request bool) {
	for len(d.ledger.Observations) > 0 {
		<-d.ledger.Observations
	}
	d.sent = d.sent[:0]
	d.receivePacket(packet(i, dhcpv4.MessageTypeDiscover))
	if len(d.sent) == 0 || !request {
		return
	}
	a := d.sent[0].YourIPAddr.String()
	d.sent = d.sent[:0]
	d.receivePacket(packet(i, dhcpv4.MessageTypeRequest, asks(a), selects("10.77.0.1")))
}
