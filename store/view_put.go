package store

import (
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// known is what the View knows of one machine. The parts come under keys of their
// own, in any order; each has the revision that it is at.
type known struct {
	machine   workflow.Machine
	facts     *hardware.Facts
	factsRev  uint64
	active    bool
	activeRev uint64
	// place is name and uid, which never change: where it is in the lists.
	place string
	free  bool // is in View.free
	// joined is the record with all of this in it; nil where no spec has come. It is
	// in readers' hands: what changes is made anew.
	joined *hardware.Hardware
}

func (s *known) record() (*hardware.Hardware, bool) {
	if s == nil || s.joined == nil {
		return nil, false
	}
	return s.joined, true
}

// byName orders machines by name; two have one name only between two changes.
func byName(a, b *known) int { return strings.Compare(a.place, b.place) }

// apply is called with mu held. The same change may come twice, and a change may
// come after a later one of the same key; each key only moves forward.
func (v *View) apply(rev uint64, changes []KeyChange) error {
	for _, c := range changes {
		if !shown(c.Key) {
			continue
		}
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
	v.subnets.sort()
	v.rules.sort()
	return nil
}

func (v *View) put(key string, value []byte, rev uint64) error {
	if v.subnets.has(key) {
		return v.subnets.put(v.db, key, value, rev)
	}
	if v.rules.has(key) {
		return v.rules.put(v.db, key, value, rev)
	}
	if isTokenKey(key) {
		return v.tokens.put(v.db, key, value, rev)
	}
	if uid, ok := strings.CutPrefix(key, prefixActive); ok {
		if s := v.at(uid); s.activeRev < rev {
			s.active, s.activeRev = true, rev
		}
		return nil
	}
	uid, what, _ := splitHardware(key)
	switch s := v.at(uid); what {
	case partSpec:
		return v.putSpec(s, uid, key, value, rev)
	case partMachine:
		return v.putMachine(s, key, value, rev)
	case partFacts:
		return v.putFacts(s, key, value, rev)
	}
	return nil
}

// at is the machine's entry, made where there is none.
func (v *View) at(uid string) *known {
	s := v.machines[uid]
	if s == nil {
		s = new(known)
		v.machines[uid] = s
	}
	return s
}

func (v *View) putSpec(s *known, uid, key string, value []byte, rev uint64) error {
	if s.joined != nil && s.joined.Meta.Revision >= rev {
		return nil
	}
	h := new(hardware.Hardware)
	if err := v.db.decode(key, value, h); err != nil {
		return err
	}
	h.Meta.Revision = rev
	if h.Spec.UserData != "" {
		h.Spec.UserData = hardware.Redacted
	}
	for i := range h.Spec.SSHKeys {
		v.share(&h.Spec.SSHKeys[i])
	}
	v.dropKeys(uid, s.joined)
	for _, n := range h.Spec.Interfaces {
		v.macs[n.MAC] = uid
		for _, p := range n.Addresses {
			v.addrs[p.Addr()] = uid
		}
	}
	first := s.joined == nil
	s.joined, s.place = h, h.Meta.Name+"\x00"+uid
	v.join(s)
	if first { // the name and the uid never change
		i, _ := slices.BinarySearchFunc(v.names, s, byName)
		v.names = slices.Insert(v.names, i, s)
	}
	return nil
}

func (v *View) putMachine(s *known, key string, value []byte, rev uint64) error {
	if s.machine.Revision >= rev {
		return nil
	}
	var m workflow.Machine
	if err := v.db.decode(key, value, &m); err != nil {
		return err
	}
	m.Revision = rev
	s.machine = m
	v.join(s)
	return nil
}

func (v *View) putFacts(s *known, key string, value []byte, rev uint64) error {
	if s.factsRev >= rev {
		return nil
	}
	f := new(hardware.Facts)
	if err := v.db.decode(key, value, f); err != nil {
		return err
	}
	for _, t := range []*string{&f.Firmware, &f.SecureBoot, &f.Arch, &f.CPUModel, &f.Vendor, &f.Product, &f.BIOS, &f.Kernel, &f.Worker} {
		v.share(t)
	}
	f.Disks, f.NICs = slices.Clip(f.Disks), slices.Clip(f.NICs)
	for i := range f.Disks {
		v.share(&f.Disks[i].Path)
		v.share(&f.Disks[i].Model)
		v.share(&f.Disks[i].Transport)
	}
	for i := range f.NICs {
		v.share(&f.NICs[i].Name)
		v.share(&f.NICs[i].Driver)
	}
	if f.BMC != nil {
		v.share(&f.BMC.Firmware)
	}
	v.unlike(s)
	s.facts, s.factsRev = f, rev
	for _, k := range f.Identity().Keys() {
		v.alike[k] = append(v.alike[k], s)
	}
	v.join(s)
	return nil
}

// unlike forgets what the machine can be known by.
func (v *View) unlike(s *known) {
	for _, k := range s.facts.Identity().Keys() {
		if i := slices.Index(v.alike[k], s); i >= 0 {
			v.alike[k] = slices.Delete(v.alike[k], i, i+1)
		}
		if len(v.alike[k]) == 0 {
			delete(v.alike, k)
		}
	}
}

// maxWords bounds what is remembered of shared texts; they come from machines too.
const maxWords = 10_000

// share makes equal texts of many records one.
func (v *View) share(s *string) {
	if *s == "" {
		return
	}
	if w, ok := v.words[*s]; ok {
		*s = w
		return
	}
	if len(v.words) >= maxWords {
		clear(v.words)
	}
	v.words[*s] = *s
}

// join makes a new record of all parts.
func (v *View) join(s *known) {
	was := s.free
	s.free = false
	if s.joined != nil {
		h := *s.joined
		h.Status, h.Facts = ofNew(s.machine.Status), s.facts
		s.joined = &h
		s.free = h.Status.Claim == nil && (h.Status.State == hardware.StateAvailable || h.Status.KeptUnwiped())
	}
	if s.free == was {
		return
	}
	i, _ := slices.BinarySearchFunc(v.free, s, byName)
	if s.free {
		v.free = slices.Insert(v.free, i, s)
	} else {
		v.free = slices.Delete(v.free, i, i+1)
	}
}

func (v *View) delete(key string, rev uint64) {
	if isTokenKey(key) {
		v.tokens.delete(key, rev)
		return
	}
	if v.subnets.has(key) {
		v.subnets.delete(key, rev)
		return
	}
	if v.rules.has(key) {
		v.rules.delete(key, rev)
		return
	}
	uid, what, ok := splitHardware(key)
	if !ok {
		uid, what = strings.TrimPrefix(key, prefixActive), ""
	}
	s := v.machines[uid]
	switch {
	case s == nil:
		return
	case what == "" && s.activeRev <= rev:
		s.active, s.activeRev = false, 0
	case what == partSpec && s.joined != nil && s.joined.Meta.Revision <= rev:
		v.dropKeys(uid, s.joined)
		if i, ok := slices.BinarySearchFunc(v.names, s, byName); ok {
			v.names = slices.Delete(v.names, i, i+1)
		}
		s.joined = nil
	case what == partMachine && s.machine.Revision <= rev:
		s.machine = workflow.Machine{}
	case what == partFacts && s.factsRev <= rev:
		v.unlike(s)
		s.facts, s.factsRev = nil, 0
	}
	v.join(s)
	if s.joined == nil && s.machine.Revision == 0 && s.factsRev == 0 && s.activeRev == 0 {
		delete(v.machines, uid)
	}
}

// dropKeys forgets a record's MACs and addresses, unless another record has taken
// them since.
func (v *View) dropKeys(uid string, h *hardware.Hardware) {
	if h == nil {
		return
	}
	for _, n := range h.Spec.Interfaces {
		if v.macs[n.MAC] == uid {
			delete(v.macs, n.MAC)
		}
		for _, p := range n.Addresses {
			if v.addrs[p.Addr()] == uid {
				delete(v.addrs, p.Addr())
			}
		}
	}
}
