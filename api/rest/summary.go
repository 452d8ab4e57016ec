package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// maxNames is how many machines one request may name.
	maxNames = 1000
	// fewRows is up to how many rows their leases are looked up one by one: a page asks
	// for the rows that events named.
	fewRows = 64
)

// IndexRecords are what lists of machines need beside HardwareIndex, from memory.
type IndexRecords interface {
	// IndexCursor is a cursor that HardwareIndex has reached: what it does not show comes
	// after it.
	IndexCursor() uint64
	// HardwareIndexOf are the machines of those names that there are, shared as
	// HardwareIndex's.
	HardwareIndexOf(names []string) []*hardware.Hardware
	// Active reports whether a workflow of the machine has not ended.
	Active(uid string) bool
	// LeaseOf is the newest lease that a MAC has and that is good at a time.
	LeaseOf(mac hardware.MAC, now time.Time) (hardware.Lease, bool)
}

func summaryRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/summaries", Does: "List every machine in a row of its own, filtered, sorted and in pages", Role: RoleViewer, Claimer: true,
		Out: api.List[api.HardwareSummary]{}, Query: append(hardwareListing().params(), "name"), handle: (*server).summaries,
	}}
}

// summaries answers from memory: no row costs a read of the store.
func (s *server) summaries(w http.ResponseWriter, r *http.Request) error {
	ctx, q, l := r.Context(), r.URL.Query(), hardwareListing()
	var names []string
	if q.Has("name") {
		if names = strings.Split(q.Get("name"), ","); len(names) > maxNames {
			return badRequest("ask several times", "name has %d names, the limit is %d", len(names), maxNames)
		}
		l.filters["name"] = func(string) (func(*hardware.Hardware) bool, error) {
			return func(*hardware.Hardware) bool { return true }, nil // nothing else is looked at
		}
	}
	lq, err := s.hardware.query(l, q)
	if err != nil {
		return err
	}
	cursor, index := s.Records.IndexCursor(), s.Records.HardwareIndex
	if q.Has("name") {
		slices.Sort(names)
		index = func() []*hardware.Hardware { return s.Records.HardwareIndexOf(slices.Compact(names)) }
	}
	c := CallerFrom(ctx)
	all := slices.DeleteFunc(index(), func(h *hardware.Hardware) bool { return !c.Sees(h) })
	rows, total, remaining, next := s.hardware.page(lq, all)
	head := api.List[json.RawMessage]{
		APIVersion: api.Version, Kind: "HardwareSummaryList", Continue: next, Total: total, Remaining: remaining, Cursor: cursor,
	}
	address, err := s.addresses(ctx, len(rows))
	if err != nil {
		return err
	}
	return serveRows(s, w, r, head, rows, func(h *hardware.Hardware) (json.RawMessage, error) {
		in := summarized{h, s.Records.Active(h.Meta.UID), reservedAddress(h)}
		if !in.address.IsValid() {
			in.address = address(h)
		}
		return s.rows.of(in, len(rows))
	})
}

// summarized is all that a row is made of. The record is in memory and never changed:
// another one comes in its place.
type summarized struct {
	*hardware.Hardware
	active  bool
	address netip.Addr
}

// summaryRows keeps the rows of machines that have not changed since: hundreds of open
// pages ask for the same thousands.
type summaryRows struct {
	mu   sync.Mutex
	kept map[string]summaryRow // by uid
}

type summaryRow struct {
	summarized
	json json.RawMessage
}

// of is the row in JSON; there are at least so many machines.
func (c *summaryRows) of(in summarized, machines int) (json.RawMessage, error) {
	c.mu.Lock()
	row, ok := c.kept[in.Meta.UID]
	c.mu.Unlock()
	if ok && row.summarized == in {
		return row.json, nil
	}
	raw, err := json.Marshal(summary(in))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) > 2*max(machines, maxPage) { // those that were deleted are in it
		c.kept = map[string]summaryRow{}
	}
	c.kept[in.Meta.UID] = summaryRow{in, raw}
	return raw, nil
}

// reservedAddress is the first that the record reserves.
func reservedAddress(h *hardware.Hardware) netip.Addr {
	for _, n := range h.Spec.Interfaces {
		if len(n.Addresses) > 0 {
			return n.Addresses[0].Addr()
		}
	}
	return netip.Addr{}
}

// addresses finds the address that a machine has a lease of, for so many machines. A
// claimer learns those of the machines that it holds.
func (s *server) addresses(ctx context.Context, rows int) (func(*hardware.Hardware) netip.Addr, error) {
	now, of := s.Now(), s.Records.LeaseOf
	if rows > fewRows {
		all, err := s.Records.ListLeases(ctx)
		if err != nil {
			return nil, err
		}
		newest := map[hardware.MAC]hardware.Lease{}
		for _, l := range all {
			if l.State(now) == hardware.LeaseActive && !l.Updated.Before(newest[l.MAC].Updated) {
				newest[l.MAC] = l
			}
		}
		of = func(mac hardware.MAC, _ time.Time) (hardware.Lease, bool) {
			l, ok := newest[mac]
			return l, ok
		}
	}
	c := CallerFrom(ctx)
	return func(h *hardware.Hardware) netip.Addr {
		if c.Limited() && !c.holds(h) {
			return netip.Addr{}
		}
		for _, n := range h.Spec.Interfaces {
			if l, ok := of(n.MAC, now); ok {
				return l.Addr
			}
		}
		return netip.Addr{}
	}, nil
}

// summary is the row of a machine.
func summary(h summarized) *api.HardwareSummary {
	st := &h.Status
	out := &api.HardwareSummary{
		Name: h.Meta.Name, UID: h.Meta.UID, Revision: h.Meta.Revision, Labels: h.Meta.Labels,
		State: st.State, Since: st.Since, Deadline: st.Deadline, Hold: st.Hold, HoldReason: st.HoldReason, HoldSince: st.HoldSince,
		Maintenance: st.Maintenance, MaintenanceNote: st.MaintenanceNote, Protect: h.Spec.Protect, Power: st.Power.State,
		Hostname: h.Spec.Hostname, Rack: h.Spec.Rack, Position: h.Spec.Position, AssetTag: h.Spec.AssetTag, Arch: h.Arch(), Address: h.address,
		Workflow: st.Workflow, Active: st.Workflow != "" && h.active, Image: st.Installing, Installed: st.Installed, OSUp: st.OSUp, Discovered: st.Discovered,
		Issues: len(st.Issues),
	}
	if no := false; !h.Spec.Netboot.PXE() {
		out.PXE = &no
	}
	if no := false; !h.Spec.Netboot.Workflow() {
		out.AllowWorkflow = &no
	}
	if p := h.Spec.Power; p != nil {
		out.PowerDriver = p.Driver
	}
	for i, n := range h.Spec.Interfaces {
		if i == 0 {
			out.MAC = n.MAC
		}
		if len(h.Spec.Interfaces) > 1 {
			out.MACs = append(out.MACs, n.MAC)
		}
	}
	if f := h.Facts; f != nil {
		out.Firmware, out.CPUs, out.MemoryBytes, out.Vendor, out.Product, out.Serial = f.Firmware, f.CPUs, f.MemoryBytes, f.Vendor, f.Product, f.Serial
		for _, d := range f.Disks {
			if !d.ReadOnly && !d.Removable {
				out.Disks++
				out.DiskBytes += d.Bytes
			}
		}
	}
	if c := st.Claim; c != nil {
		out.Owner, out.Claim = c.Owner, c.ID
	}
	if out.Image == "" && st.Install != nil {
		out.Image = st.Install.Image
	}
	if len(st.Issues) > 0 {
		out.Issue = &st.Issues[0]
	}
	return out
}
