package store

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// View is what hot paths read: the machines, with spec, status and facts, the
// subnets and the rules, in memory. It shows a DB's own commits when they return, those of other
// writers soon after. What it returns is shared and must not be changed.
//
// In its Hardware a UserData that is not empty reads hardware.Redacted: those are
// large, and no hot path needs them. Read the record where they are wanted.
type View struct {
	db *DB

	mu       sync.RWMutex
	watched  uint64 // every transaction up to it has been seen
	machines map[string]*known
	macs     map[hardware.MAC]string // uid
	addrs    map[netip.Addr]string   // uid, of reserved addresses
	alike    map[string][]*known     // by hardware.Identity.Keys of the facts
	names    []*known                // those with a record, by name
	free     []*known                // those of names that nobody has and that are available
	subnets  shelf[hardware.Subnet]
	rules    shelf[hardware.Rule]
	// gone has own deletes that the watch has not come to.
	gone   map[string]uint64
	tokens tokenView
	// words are texts that many machines share: models, drivers, keys.
	words map[string]string
}

func newView(db *DB) *View {
	return &View{
		db: db, machines: map[string]*known{}, macs: map[hardware.MAC]string{}, addrs: map[netip.Addr]string{}, alike: map[string][]*known{},
		subnets: newShelf(subnets()), rules: newShelf(rules()), gone: map[string]uint64{}, words: map[string]string{}, tokens: newTokenView(),
	}
}

// HardwareByMAC finds the machine that has the NIC.
func (v *View) HardwareByMAC(mac hardware.MAC) (*hardware.Hardware, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.machines[v.macs[mac]].record()
}

// HardwareByAddress finds the machine for which the address is reserved.
func (v *View) HardwareByAddress(a netip.Addr) (*hardware.Hardware, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.machines[v.addrs[a]].record()
}

// HardwareByUID finds a machine.
func (v *View) HardwareByUID(uid string) (*hardware.Hardware, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.machines[uid].record()
}

// HardwareByName finds a machine.
func (v *View) HardwareByName(name string) (*hardware.Hardware, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	i, ok := slices.BinarySearchFunc(v.names, name, func(s *known, name string) int { return strings.Compare(s.joined.Meta.Name, name) })
	if !ok {
		return nil, false
	}
	return v.names[i].joined, true
}

// Hardware lists all machines, by name. The slice is the caller's, the records are
// shared.
func (v *View) Hardware() []*hardware.Hardware {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]*hardware.Hardware, len(v.names))
	for i, s := range v.names {
		out[i] = s.joined
	}
	return out
}

// maxAlike bounds how many are looked at that claim to be one machine.
const maxAlike = 64

// Alike lists machines that have the UUID or the serial number of the facts, or one of
// its NICs in their record; no more than anybody reads. A machine may be in it twice.
func (v *View) Alike(f *hardware.Facts) []*hardware.Hardware {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []*hardware.Hardware
	add := func(s *known) {
		if h, ok := s.record(); ok && len(out) < maxAlike {
			out = append(out, h)
		}
	}
	for _, n := range f.NICs {
		add(v.machines[v.macs[n.MAC]])
	}
	for _, k := range f.Identity().Keys() {
		for _, s := range v.alike[k] {
			add(s)
		}
	}
	return out
}

// Active reports whether a workflow of the machine has not ended.
func (v *View) Active(uid string) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.machines[uid]
	return s != nil && s.active
}

// Machine is the engine's value of a machine; the zero one, with its UID, where the
// engine has written none. False where there is no such Hardware.
func (v *View) Machine(uid string) (workflow.Machine, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.machines[uid]
	if s == nil || s.joined == nil {
		return workflow.Machine{UID: uid}, false
	}
	m := s.machine
	m.UID = uid
	return m, true
}

// BootingAt is the machine whose open boot has that client address. It looks at
// all of them, so it is for what is rare.
func (v *View) BootingAt(client netip.Addr) (workflow.Machine, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, s := range v.machines {
		if b := s.machine.Boot; b != nil && !b.Closed && b.Client == client {
			return s.machine, true
		}
	}
	return workflow.Machine{}, false
}

// Subnets lists all subnets, by name.
func (v *View) Subnets() []*hardware.Subnet {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.subnets.sorted
}

// Rules lists all rules, by name.
func (v *View) Rules() []*hardware.Rule {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rules.sorted
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
	for _, prefix := range []string{prefixHardware, prefixActive, prefixSubnet, prefixRule, prefixToken, prefixTokenUse} {
		err := v.db.each(ctx, Range{Prefix: prefix, Limit: MaxPage}, func(e Entry) error {
			return fresh.put(e.Key, e.Value, e.Revision)
		})
		if err != nil {
			return err
		}
	}
	fresh.subnets.sort()
	fresh.rules.sort()
	v.machines, v.names, v.free, v.words = fresh.machines, fresh.names, fresh.free, fresh.words
	v.macs, v.addrs, v.alike = fresh.macs, fresh.addrs, fresh.alike
	v.subnets, v.rules, v.gone = fresh.subnets, fresh.rules, fresh.gone
	v.tokens.replace(fresh.tokens)
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
	return strings.HasPrefix(key, prefixHardware) || strings.HasPrefix(key, prefixActive) || strings.HasPrefix(key, prefixSubnet) || strings.HasPrefix(key, prefixRule) || isTokenKey(key)
}
