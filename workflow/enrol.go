package workflow

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Bounds of enrolment: what a machine that nobody vouched for can make us write.
const (
	// MaxDiscovered is how many discovered machines may be pending.
	MaxDiscovered = 256
	// enrolRate bounds the records that discovery makes per second, after a rack that is
	// switched on at once.
	enrolRate  = 2
	enrolBurst = 64
	// AcceptBurst is how many machines rules accept at once, and acceptRate how many more
	// per second: facts can be made up, and a rule stands for everybody who matches it.
	AcceptBurst = 256
	acceptRate  = 256.0 / 3600
	// enrolEvery is how often a machine that is not accepted may report itself, after the
	// first few: what its BMC says comes later than the rest.
	enrolEvery   = time.Minute
	enrolReports = 4
	// enrolWithin is how long the worker of a machine without a record has to report what
	// is in it.
	enrolWithin = 5 * time.Minute
	// maxDisputes bounds the records that one report can put in doubt.
	maxDisputes = 8
)

// Later says why a report is not taken now; it may be sent again.
type Later struct {
	Reason hardware.Reason
	Detail string
}

func (l *Later) Error() string { return l.Reason.Sentence() + ": " + l.Detail }

// byMAC is the machine whose record has the MAC; nil where none has.
func (e *Engine) byMAC(mac hardware.MAC) *hardware.Hardware {
	if e.c.Alike == nil {
		return nil
	}
	for _, h := range e.c.Alike(&hardware.Facts{NICs: []hardware.NICFact{{MAC: mac}}}) {
		if _, ok := h.NIC(mac); ok {
			return h
		}
	}
	return nil
}

// subnetOf is the Subnet that an address is in; nil where there is none.
func (e *Engine) subnetOf(a netip.Addr) *hardware.Subnet {
	if e.c.Subnets == nil {
		return nil
	}
	for _, s := range e.c.Subnets() {
		if s.Spec.Prefix.Contains(a.Unmap()) {
			return s
		}
	}
	return nil
}

// discovers reports whether machines without a record may still boot in a Subnet.
func (e *Engine) discovers(subnet string) bool {
	return e.c.Subnets != nil && slices.ContainsFunc(e.c.Subnets(), func(s *hardware.Subnet) bool {
		return s.Meta.Name == subnet && s.Spec.Discovery
	})
}

// redeemStranger is Redeem for the token of a machine without a record. Its boot may be
// forgotten, for the appliance was restarted: the token is genuine, so it was given to
// that machine, and as long as it lives the first key that comes is believed.
func (e *Engine) redeemStranger(mac hardware.MAC, boot string, key ed25519.PublicKey, from netip.Addr) (Admission, error) {
	now, s := e.c.Now(), &e.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.get(mac)
	refuse := func(r hardware.Reason) (Admission, error) {
		if x != nil {
			x.hear(e.heard(x.boot.ID, r, "from "+from.String()))
		}
		return Admission{}, &Refused{r}
	}
	if x == nil || x.boot.ID < boot {
		began := idTime(boot)
		subnet := e.subnetOf(from)
		if now.Sub(began) > hardware.BootDeadline {
			return refuse(hardware.ReasonTokenExpired)
		}
		if subnet == nil || !subnet.Spec.Discovery {
			return refuse(hardware.ReasonUnknownMachine)
		}
		if x == nil {
			if x = s.add(mac, now); x == nil {
				return Admission{}, &Refused{hardware.ReasonRateLimited}
			}
		}
		x.subnet, x.acked = subnet.Meta.Name, true
		x.boot = hardware.Boot{
			ID: boot, Hardware: hardware.StrangerUID(mac), Started: began, Deadline: began.Add(hardware.BootDeadline), MAC: mac,
			Client: from, Discovery: true, Next: strangerNext(true), Phase: hardware.PhaseKernel,
		}
	}
	b := &x.boot
	switch {
	case b.ID != boot:
		return refuse(hardware.ReasonTokenSuperseded)
	case b.WorkerKey != nil && subtle.ConstantTimeCompare(b.WorkerKey, key) != 1:
		return refuse(hardware.ReasonTokenSecond)
	case b.WorkerKey == nil && now.After(b.Deadline):
		return refuse(hardware.ReasonTokenExpired)
	case !e.discovers(x.subnet):
		return refuse(hardware.ReasonUnknownMachine)
	}
	if b.WorkerKey == nil {
		b.WorkerKey = slices.Clone(key)
		b.Reach(hardware.PhaseWorker, now)
		ev := e.heard(b.ID, hardware.ReasonWorkerConnected, "from "+from.String())
		ev.Took = hardware.Duration(now.Sub(b.Started))
		x.hear(ev)
	}
	if x.m == nil {
		x.m = &machine{uid: b.Hardware}
	}
	return Admission{Boot: b.ID, UID: b.Hardware, Machine: strangerName, Scope: hardware.ScopeEnrol}, nil
}

// attachStranger is Attach for a machine without a record.
func (e *Engine) attachStranger(mac hardware.MAC, adm Admission) (*Session, error) {
	var m *machine
	e.strangers.update(mac, adm.Boot, func(x *stranger) { m = x.m })
	if m == nil {
		return nil, fmt.Errorf("boot %s of %s is not the newest any more", adm.Boot, mac)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session != nil {
		m.session.close("another connection of this machine took over")
	}
	s := e.newSession(m, adm)
	m.session = s
	m.attached.Store(true)
	s.send(Command{Finish: &Finish{What: FinishWait, Reason: "this machine has no record yet: it reports what is in it"}})
	return s, nil
}

// enrol makes a record of what a machine without one reports, or finds the one that it
// is another NIC of. The worker then comes again, as that machine's, or restarts. The
// caller holds the lock of the session's machine.
func (e *Engine) enrol(ctx context.Context, s *Session, mac hardware.MAC, f *hardware.Facts) error {
	e.enrolling.Lock()
	h, err := e.enrolled(ctx, s, mac, f)
	e.enrolling.Unlock()
	if err != nil {
		var later *Later
		if errors.As(err, &later) {
			e.strangers.update(mac, s.boot, func(x *stranger) { x.hear(e.heard(s.boot, later.Reason, later.Detail)) })
			if later.Reason == hardware.ReasonEnrolFull {
				now := e.c.Now()
				e.c.Note(Event{Reason: later.Reason, Detail: later.Detail, Count: 1, First: now, Last: now})
			}
		}
		return err
	}
	e.strangers.forget(mac)
	if h.Status.State == hardware.StatePending {
		s.close("this machine has the record " + h.Meta.Name + " now")
		return nil
	}
	e.startByRule(ctx, h.Meta.UID)
	s.send(Command{Finish: &Finish{What: FinishReboot, Reason: "this machine is " + h.Meta.Name + " now, and boots as that"}})
	return nil
}

// enrolled decides and writes; the caller holds e.enrolling, so that two NICs of one
// machine become one record.
func (e *Engine) enrolled(ctx context.Context, s *Session, mac hardware.MAC, f *hardware.Facts) (*hardware.Hardware, error) {
	var x stranger
	known := false
	e.strangers.update(mac, s.boot, func(now *stranger) {
		x, known = *now, true
		x.heard = slices.Clone(now.heard)
	})
	if !known {
		return nil, fmt.Errorf("boot %s of %s is not the newest any more", s.boot, mac)
	}
	if h := e.byMAC(mac); h != nil { // somebody registered it meanwhile
		c := *h
		c.Status.State = hardware.StateAvailable
		return &c, nil
	}
	slices.SortStableFunc(x.heard, func(a, b Event) int { return a.First.Compare(b.First) })
	if h := e.twin(mac, f); h != nil {
		return e.join(ctx, h.Meta.UID, mac, &x, f)
	}
	if n := e.discovered(); n >= MaxDiscovered {
		return nil, &Later{hardware.ReasonEnrolFull, fmt.Sprintf("%d are pending (accept or delete some: %s)", n, typePending)}
	}
	if !e.enrolments.take(e.c.Now(), enrolRate, enrolBurst) {
		return nil, &Later{hardware.ReasonRateLimited, fmt.Sprintf("more than %d machines a second report themselves", enrolRate)}
	}
	return e.discover(ctx, mac, &x, f)
}

// discovered counts the machines that were discovered and are pending.
func (e *Engine) discovered() int {
	n := 0
	for _, h := range e.c.Machines() {
		if h.Status.State == hardware.StatePending && !h.Status.Discovered.IsZero() {
			n++
		}
	}
	return n
}

// twin is the discovered machine that this one is, booted from another NIC: each must
// name the other's NIC, in what it reported through its own boot. So nobody becomes part
// of a record by saying so.
func (e *Engine) twin(mac hardware.MAC, f *hardware.Facts) *hardware.Hardware {
	has := func(f *hardware.Facts, mac hardware.MAC) bool {
		return slices.ContainsFunc(f.NICs, func(n hardware.NICFact) bool { return n.MAC == mac })
	}
	id := f.Identity()
	for _, h := range e.c.Alike(f) {
		if h.Status.Discovered.IsZero() || h.Status.State == hardware.StateRetired || h.Facts == nil || !has(h.Facts, mac) {
			continue
		}
		was := h.Facts.Identity()
		if was.UUID != id.UUID || !strings.EqualFold(was.Serial, id.Serial) {
			continue
		}
		if slices.ContainsFunc(h.Spec.Interfaces, func(n hardware.NIC) bool { return has(f, n.MAC) }) {
			return h
		}
	}
	return nil
}

// join adds the NIC that a discovered machine booted from to its record.
func (e *Engine) join(ctx context.Context, uid string, mac hardware.MAC, x *stranger, f *hardware.Facts) (*hardware.Hardware, error) {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		h, mc, err := e.load(ctx, uid)
		if err != nil {
			return nil, err
		}
		h.Spec.Interfaces = append(slices.Clone(h.Spec.Interfaces), hardware.NIC{MAC: mac})
		ch := &Change{Hardware: h, Machine: mc, Events: of(h, x.heard)}
		ch.Events = append(ch.Events, e.event(h, x.boot.ID, hardware.ReasonRecordChanged, "NIC "+mac.String()+" joins: the machine booted from it, and its facts name it"))
		if mc.Status.State == hardware.StatePending {
			b := x.boot
			b.Hardware = uid
			mc.Boot, ch.Facts = &b, f
			ch.Events = append(ch.Events, e.findings(h, &mc.Status, b.ID, f)...)
		}
		err = e.c.Store.Commit(ctx, ch)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err == nil && ch.Facts != nil && m.session != nil {
			m.session.close("a newer boot of this machine took over")
			m.session, m.left = nil, e.c.Now()
		}
		h.Status = mc.Status
		return h, err
	}
}

// discover writes the record of a machine that nobody registered, with all that was
// seen of it since its first packet.
func (e *Engine) discover(ctx context.Context, mac hardware.MAC, x *stranger, f *hardware.Facts) (*hardware.Hardware, error) {
	now, limited := e.c.Now(), false
	may := sync.OnceValue(func() bool { limited = !e.mayAccept(); return !limited })
	for _, name := range enrolNames(mac, f) {
		b := x.boot
		h := &hardware.Hardware{
			Meta: hardware.Meta{Name: name, UID: NewID(now), Created: now},
			Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: mac}}, Arch: enrolArch(f, b.Firmware)},
		}
		b.Hardware = h.Meta.UID
		mc := &Machine{UID: h.Meta.UID, Boot: &b, Status: hardware.Status{State: hardware.StatePending, Since: now, Discovered: now}}
		h.Status = mc.Status
		events := append(of(h, x.heard), e.event(h, b.ID, hardware.ReasonDiscovered, enrolDetail(mac, x.subnet, f)))
		events = append(events, e.findings(h, &mc.Status, b.ID, f)...)
		h.Facts = f
		events = append(events, e.judge(h, mc, b.ID, x.subnet, may)...)
		err := e.c.Store.Commit(ctx, &Change{Hardware: h, Machine: mc, Facts: f, Events: events})
		if errors.Is(err, ErrExists) {
			continue // a name is for the first
		}
		if err != nil {
			return nil, err
		}
		h.Status = mc.Status
		m := e.machine(h.Meta.UID)
		m.mu.Lock()
		m.limited = limited
		m.mu.Unlock()
		e.dispute(ctx, h, f)
		e.c.Log.Info("discovered", "hardware", name, "mac", mac, "subnet", x.subnet, "state", mc.Status.State)
		return h, nil
	}
	return nil, &Later{hardware.ReasonEnrolFull, "its name is taken: " + enrolNames(mac, f)[0]}
}

// of are observations as events of a record.
func of(h *hardware.Hardware, heard []Event) []Event {
	out := slices.Clone(heard)
	for i := range out {
		out[i].Hardware, out[i].Machine = h.Meta.UID, h.Meta.Name
	}
	return out
}

// enrolNames are the names for a machine that nobody named, the best first. A machine
// must not take a name that somebody may want for another one, so they have a prefix.
func enrolNames(mac hardware.MAC, f *hardware.Facts) []string {
	byMAC := "discovered-" + strings.ReplaceAll(mac.String(), ":", "-")
	serial := strings.ToLower(hardware.Unfilled(f.Serial))
	name := "sn-" + serial
	if len(serial) < 4 || len(serial) > 32 || !strings.ContainsAny(serial, "0123456789") || hardware.ValidName(name) != nil {
		return []string{byMAC}
	}
	return []string{name, byMAC}
}

// enrolArch is the architecture by the facts, else by the firmware.
func enrolArch(f *hardware.Facts, fw hardware.Firmware) string {
	if f.Arch == "amd64" || f.Arch == "arm64" {
		return f.Arch
	}
	return fw.Arch()
}

// enrolDetail says what reported itself.
func enrolDetail(mac hardware.MAC, subnet string, f *hardware.Facts) string {
	what := strings.Join(slices.DeleteFunc([]string{f.Vendor, f.Product}, func(s string) bool { return s == "" }), " ")
	if what == "" {
		what = "a machine"
	}
	if s := hardware.Unfilled(f.Serial); s != "" {
		what += ", serial number " + s
	}
	return hardware.PlainText(what, 300) + ", by NIC " + mac.String() + " in subnet " + subnet
}

// dispute tells the records that a new one is in conflict with. Nothing else about them
// changes.
func (e *Engine) dispute(ctx context.Context, h *hardware.Hardware, f *hardware.Facts) {
	told := map[string]bool{h.Meta.UID: true}
	for _, o := range e.c.Alike(f) {
		if told[o.Meta.UID] || len(told) > maxDisputes {
			continue
		}
		told[o.Meta.UID] = true
		c, ok := e.counterpart(o, h, f)
		if !ok {
			continue
		}
		m := e.machine(o.Meta.UID)
		m.mu.Lock()
		err := e.change(ctx, o.Meta.UID, func(o *hardware.Hardware, mc *Machine) (*Event, error) {
			if slices.ContainsFunc(mc.Status.Conflicts, c.Is) {
				return nil, nil
			}
			same := func(x hardware.IdentityConflict) bool { return x.Kind == c.Kind }
			mc.Status.Conflicts = append(slices.DeleteFunc(slices.Clone(mc.Status.Conflicts), same), c)
			return e.told(o, hardware.ReasonConflict, c.Detail), nil
		})
		m.mu.Unlock()
		if err != nil && !errors.Is(err, ErrNotFound) {
			e.c.Log.Error("conflict not written", "hardware", o.Meta.Name, "with", h.Meta.Name, "err", err)
		}
	}
}

// counterpart is what the new record h, whose machine reports f, means for o: in the
// words of o's own next report, so that a human answers it once.
func (e *Engine) counterpart(o, h *hardware.Hardware, f *hardware.Facts) (hardware.IdentityConflict, bool) {
	now := e.c.Now()
	if o.Facts != nil {
		all := hardware.Conflicts(o, o.Facts, e.c.Alike(o.Facts), now)
		i := slices.IndexFunc(all, func(c hardware.IdentityConflict) bool {
			return c.With != "" && !slices.ContainsFunc(o.Status.Conflicts, c.Is)
		})
		if i >= 0 {
			return all[i], true
		}
	}
	for _, n := range f.NICs { // which only the new one says
		if _, ok := o.NIC(n.MAC); ok {
			detail := fmt.Sprintf("its NIC %s is also of %s, which was discovered by NIC %s", n.MAC, h.Meta.Name, h.Spec.Interfaces[0].MAC)
			return hardware.IdentityConflict{Kind: hardware.ConflictMAC, With: h.Meta.Name, Detail: hardware.PlainText(detail, 256), Since: now}, true
		}
	}
	return hardware.IdentityConflict{}, false
}

// enrolSweep looks after what the workers of machines that are not accepted wait for.
func (e *Engine) enrolSweep(ctx context.Context) {
	now := e.c.Now()
	for _, m := range e.strangers.machines() {
		m.mu.Lock()
		if s := m.session; s != nil && now.Sub(s.since) > enrolWithin {
			s.sendAway(fmt.Sprintf("it did not report itself within %v", enrolWithin))
		}
		m.mu.Unlock()
	}
	for _, m := range e.all() {
		m.mu.Lock()
		if s := m.session; s != nil && s.scope == hardware.ScopeEnrol {
			if _, err := e.c.Store.Machine(ctx, m.uid); errors.Is(err, ErrNotFound) {
				s.sendAway("its record was deleted")
			} else if err == nil && m.limited {
				if err := e.reconsider(ctx, m); err != nil {
					e.c.Log.Error("rules not applied", "hardware", m.uid, "err", err)
				}
			}
		}
		m.mu.Unlock()
	}
	for _, h := range e.c.Machines() {
		if h.Status.Rule != "" {
			e.startByRule(ctx, h.Meta.UID)
		}
	}
}
