package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

// Options describe a rack.
type Options struct {
	// Lab is the LAN that the appliance serves on the lab's bridge. The upper half of
	// its subnet are the machines' addresses: 10.77.0.0/16 has room for 32,000.
	Lab *lab.Lab
	// Power is the power controller that machines are added to; nil: the rack starts its
	// own in the lab's namespace, and stops it with Close.
	Power *rig.Power
	// OS is what runs when a machine boots its disk with a system on it; ctx ends when
	// the power goes or the machine restarts, and OS must return then. It may return
	// before. nil: nothing runs.
	OS func(ctx context.Context, m *Machine, s *System)
	// Guard judges each write before it happens; an error is a violation that is kept,
	// and the write happens. It is where a test says what it knows of claims.
	Guard func(w Write) error
	// ActionTime is how long each action takes; 0 is as fast as possible.
	ActionTime time.Duration
	// Retry is the pause of a firmware that found nothing to boot before it begins
	// again; 5 s where 0.
	Retry time.Duration
	// Say prints what the machines' consoles say, for debugging; nil: nothing is printed.
	Say func(format string, args ...any)
}

// Rack has simulated machines on one LAN, and the power controller that switches them.
type Rack struct {
	o     Options
	ns    *lab.Namespace // where the machines' sockets are
	power *rig.Power
	own   bool // power is ours to close
	wire  *wire
	first netip.Addr // of the machines' addresses

	mu         sync.Mutex
	machines   []*Machine
	writes     []Write
	violations []string
}

// NewRack puts an empty rack into the lab. ctx bounds the making only.
func NewRack(ctx context.Context, o Options) (*Rack, error) {
	s := o.Lab.Subnet()
	if s.Bits() > 24 {
		return nil, fmt.Errorf("subnet %s: is too small for a rack (use 10.77.0.0/16)", s)
	}
	if o.Retry == 0 {
		o.Retry = 5 * time.Second
	}
	half := netip.PrefixFrom(offset(s.Addr(), 1<<(31-s.Bits())), s.Bits()+1)
	client, err := o.Lab.AddVeth(ctx, "sim", nil)
	if err != nil {
		return nil, err
	}
	r := &Rack{o: o, ns: client.Namespace, power: o.Power, first: half.Addr()}
	// The rack's namespace answers for the whole upper half. The lab reaches it over one
	// address: its table of neighbours holds a few hundred, and is the whole host's.
	gate := half.Addr().Prev()
	if err := client.SetAddr(ctx, netip.PrefixFrom(gate, s.Bits())); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		in   *lab.Namespace
		args []string
	}{
		{r.ns, []string{"route", "add", "local", half.String(), "dev", "lo"}},
		{o.Lab.Namespace, []string{"route", "add", half.String(), "via", gate.String(), "dev", o.Lab.Bridge()}},
	} {
		if out, err := c.in.Command(ctx, "ip", c.args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %v: %w: %s", c.args, err, out)
		}
	}
	if r.power == nil {
		if r.power, err = rig.StartPower(ctx, o.Lab.Namespace); err != nil {
			return nil, err
		}
		r.own = true
	}
	if r.wire, err = openWire(ctx, r.ns); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// offset is the n-th address after a.
func offset(a netip.Addr, n uint32) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
	return netip.AddrFrom4(b)
}

// Subnet is a record of the LAN for the API, in which machines have reservations.
func (r *Rack) Subnet() *hardware.Subnet {
	l := r.o.Lab
	return &hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{
		Prefix: l.Subnet(), Gateway: l.Gateway(), DNS: []netip.Addr{l.Gateway()}, Domain: "lab.test",
	}}
}

// Namespace is where the machines are: what listens there on a machine's address is
// reached as that machine.
func (r *Rack) Namespace() *lab.Namespace { return r.ns }

// Add puts a machine into the rack, switched off. It fails where name or MAC is taken,
// or the description makes no machine.
func (r *Rack) Add(spec Spec) (*Machine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.machines) + 1
	if err := spec.complete(n); err != nil {
		return nil, err
	}
	for _, m := range r.machines {
		if m.spec.Name == spec.Name || m.spec.MAC == spec.MAC {
			return nil, fmt.Errorf("machine %s with %s: %s with %s is there already", spec.Name, spec.MAC, m.spec.Name, m.spec.MAC)
		}
	}
	m := newMachine(r, spec, offset(r.first, uint32(n)))
	r.machines = append(r.machines, m)
	r.power.Add(m)
	return m, nil
}

// Stray asks for an address once as a thing on the LAN that is none of the machines, and
// calls itself name. What it is answered is not looked at.
func (r *Rack) Stray(mac hardware.MAC, name string) error {
	p, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(net.HardwareAddr(mac[:])), dhcpv4.WithBroadcast(true),
	}, systemClient(mac, name).modifiers()...)...)
	if err != nil {
		return err
	}
	return r.wire.send(p)
}

// Machines are all, in the order in which they were added.
func (r *Rack) Machines() []*Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.machines)
}

// Machine is the one with that name, or nil.
func (r *Rack) Machine(name string) *Machine {
	for _, m := range r.Machines() {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// Writes are all writes to disks, oldest first.
func (r *Rack) Writes() []Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.writes)
}

// Violations are what must never happen to a machine and did, oldest first.
func (r *Rack) Violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.violations)
}

func (r *Rack) wrote(w Write) {
	var bad error
	if r.o.Guard != nil {
		bad = r.o.Guard(w)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, w)
	if bad != nil {
		r.violations = append(r.violations, fmt.Sprintf("%s: %s of %s by workflow %s: %v", w.Machine, w.What, w.Disk, w.Workflow, bad))
	}
}

// Close takes the power from all machines and stops the power controller, if it is the
// rack's own. The LAN goes with the lab.
func (r *Rack) Close() error {
	var all sync.WaitGroup
	for _, m := range r.Machines() {
		all.Go(m.pull)
	}
	all.Wait()
	var err error
	if r.wire != nil {
		err = r.wire.Close()
	}
	if r.own {
		err = errors.Join(err, r.power.Close())
	}
	return err
}
