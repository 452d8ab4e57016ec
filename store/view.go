package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// View is what hot paths read: machines by MAC and by uid, and the subnets, in
// memory. It shows a DB's own commits when they return, those of other writers
// soon after. What it returns is shared and must not be changed.
//
// Its Hardware has the spec without UserData, and the status; it has no facts.
// Those are large, and no hot path needs them.
type View struct {
	db *DB

	mu       sync.RWMutex
	watched  uint64 // every transaction up to it has been seen
	specs    map[string]*hardware.Hardware
	machines map[string]workflow.Machine
	joined   map[string]*hardware.Hardware // spec and status
	macs     map[hardware.MAC]string       // uid
	subnets  map[string]*hardware.Subnet
	sorted   []*hardware.Subnet
	// gone has own deletes that the watch has not come to.
	gone map[string]uint64
}

func newView(db *DB) *View { return (&View{db: db}).reset() }

func (v *View) reset() *View {
	v.specs, v.joined = map[string]*hardware.Hardware{}, map[string]*hardware.Hardware{}
	v.machines, v.macs = map[string]workflow.Machine{}, map[hardware.MAC]string{}
	v.subnets, v.sorted, v.gone = map[string]*hardware.Subnet{}, nil, map[string]uint64{}
	return v
}

// HardwareByMAC finds the machine that has the NIC.
func (v *View) HardwareByMAC(mac hardware.MAC) (*hardware.Hardware, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	h, ok := v.joined[v.macs[mac]]
	return h, ok
}

// HardwareByUID finds a machine.
func (v *View) HardwareByUID(uid string) (*hardware.Hardware, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	h, ok := v.joined[uid]
	return h, ok
}

// Machine is the engine's value of a machine; the zero one, with its UID, where the
// engine has written none. False where there is no such Hardware.
func (v *View) Machine(uid string) (workflow.Machine, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, ok := v.specs[uid]
	m, have := v.machines[uid]
	if !have {
		m.UID = uid
	}
	return m, ok
}

// BootingAt is the machine whose open boot has that client address. It looks at
// all of them, so it is for what is rare.
func (v *View) BootingAt(client netip.Addr) (workflow.Machine, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, m := range v.machines {
		if m.Boot != nil && !m.Boot.Closed && m.Boot.Client == client {
			return m, true
		}
	}
	return workflow.Machine{}, false
}

// Subnets lists all subnets, by name.
func (v *View) Subnets() []*hardware.Subnet {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.sorted
}

// load reads everything anew. Readers wait meanwhile, so that nobody misses what
// they have just written themselves.
func (v *View) load(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	rev, err := v.db.kv.Revision(ctx)
	if err != nil {
		return err
	}
	fresh := newView(v.db)
	for _, prefix := range []string{prefixHardware, prefixSubnet} {
		err := v.db.each(ctx, Range{Prefix: prefix, Limit: MaxPage}, func(e Entry) error {
			return fresh.put(e.Key, e.Value, e.Revision)
		})
		if err != nil {
			return err
		}
	}
	fresh.sort()
	v.specs, v.joined, v.machines, v.macs = fresh.specs, fresh.joined, fresh.machines, fresh.macs
	v.subnets, v.sorted, v.gone = fresh.subnets, fresh.sorted, fresh.gone
	v.watched = rev
	return nil
}

// follow applies what others write, until ctx is done.
func (v *View) follow(ctx context.Context) error {
	for {
		v.mu.RLock()
		from := v.watched + 1
		v.mu.RUnlock()
		var failed error
		for b, err := range v.db.kv.Watch(ctx, "", from) {
			if err == nil {
				err = v.seen(b)
			}
			if err != nil {
				failed = err
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(failed, ErrCompacted):
			failed = v.load(ctx)
		}
		if failed != nil {
			return failed
		}
	}
}

// seen applies a transaction from the watch.
func (v *View) seen(b Batch) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.apply(b.Revision, b.Changes)
	v.watched = b.Revision
	for _, c := range b.Changes {
		if v.gone[c.Key] <= b.Revision {
			delete(v.gone, c.Key)
		}
	}
	return err
}

// own applies a transaction that was just committed here, before the watch comes
// to it.
func (v *View) own(rev uint64, t Txn) {
	var changes []KeyChange
	for _, p := range t.Puts {
		if shown(p.Key) {
			changes = append(changes, KeyChange{Key: p.Key, Value: p.Value})
		}
	}
	for _, k := range t.Deletes {
		if shown(k) {
			changes = append(changes, KeyChange{Key: k, Deleted: true})
		}
	}
	if len(changes) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if rev <= v.watched {
		return
	}
	for _, c := range changes {
		if c.Deleted {
			v.gone[c.Key] = rev
		}
	}
	if err := v.apply(rev, changes); err != nil {
		v.db.opts.Log.Error("a record that was just written cannot be read back", "err", err)
	}
}

func shown(key string) bool {
	return strings.HasPrefix(key, prefixHardware) || strings.HasPrefix(key, prefixSubnet)
}

// apply is called with mu held. The same change may come twice, and a change may
// come after a later one of the same key; each key only moves forward.
func (v *View) apply(rev uint64, changes []KeyChange) error {
	sort := false
	for _, c := range changes {
		if !shown(c.Key) {
			continue
		}
		sort = sort || strings.HasPrefix(c.Key, prefixSubnet)
		if c.Deleted {
			v.delete(c.Key, rev)
			continue
		}
		if v.gone[c.Key] > rev {
			continue
		}
		if err := v.put(c.Key, c.Value, rev); err != nil {
			return err
		}
	}
	if sort {
		v.sort()
	}
	return nil
}

// sort makes a new list: the old one is in readers' hands.
func (v *View) sort() {
	v.sorted = slices.SortedFunc(maps.Values(v.subnets), func(a, b *hardware.Subnet) int {
		return cmp.Compare(a.Meta.Name, b.Meta.Name)
	})
}

func (v *View) put(key string, value []byte, rev uint64) error {
	if strings.HasPrefix(key, prefixSubnet) {
		return v.putSubnet(key, value, rev)
	}
	uid, what, _ := splitHardware(key)
	switch what {
	case partSpec:
		return v.putSpec(uid, key, value, rev)
	case partMachine:
		return v.putMachine(uid, key, value, rev)
	}
	return nil
}

func (v *View) putSubnet(key string, value []byte, rev uint64) error {
	if old := v.subnets[key]; old != nil && old.Meta.Revision >= rev {
		return nil
	}
	s := new(hardware.Subnet)
	if err := v.db.decode(key, value, s); err != nil {
		return err
	}
	s.Meta.Revision = rev
	v.subnets[key] = s
	return nil
}

func (v *View) putSpec(uid, key string, value []byte, rev uint64) error {
	old := v.specs[uid]
	if old != nil && old.Meta.Revision >= rev {
		return nil
	}
	h := new(hardware.Hardware)
	if err := v.db.decode(key, value, h); err != nil {
		return err
	}
	h.Meta.Revision = rev
	h.Spec.UserData = ""
	v.dropMACs(uid, old)
	for _, n := range h.Spec.Interfaces {
		v.macs[n.MAC] = uid
	}
	v.specs[uid] = h
	v.join(uid)
	return nil
}

func (v *View) putMachine(uid, key string, value []byte, rev uint64) error {
	if v.machines[uid].Revision >= rev {
		return nil
	}
	var m workflow.Machine
	if err := v.db.decode(key, value, &m); err != nil {
		return err
	}
	m.Revision = rev
	v.machines[uid] = m
	v.join(uid)
	return nil
}

func (v *View) delete(key string, rev uint64) {
	if strings.HasPrefix(key, prefixSubnet) {
		if s := v.subnets[key]; s != nil && s.Meta.Revision <= rev {
			delete(v.subnets, key)
		}
		return
	}
	uid, what, _ := splitHardware(key)
	switch what {
	case partSpec:
		if h := v.specs[uid]; h != nil && h.Meta.Revision <= rev {
			v.dropMACs(uid, h)
			delete(v.specs, uid)
		}
	case partMachine:
		if v.machines[uid].Revision <= rev {
			delete(v.machines, uid)
		}
	}
	v.join(uid)
}

// dropMACs forgets a record's MACs, unless another record has taken them since.
func (v *View) dropMACs(uid string, h *hardware.Hardware) {
	if h == nil {
		return
	}
	for _, n := range h.Spec.Interfaces {
		if v.macs[n.MAC] == uid {
			delete(v.macs, n.MAC)
		}
	}
}

// join makes a new record of spec and status: the old one is in readers' hands.
func (v *View) join(uid string) {
	spec := v.specs[uid]
	if spec == nil {
		delete(v.joined, uid)
		return
	}
	h := *spec
	h.Status = ofNew(v.machines[uid].Status)
	v.joined[uid] = &h
}
