package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

// State is what a machine does.
type State string

// The states.
const (
	Off      State = "off"
	Firmware State = "firmware" // looks for something to boot
	Hung     State = "hung"     // by a fault
	Worker   State = "worker"
	Running  State = "running" // the system of its disk
)

// Machine is one simulated machine. Its methods may be used concurrently.
type Machine struct {
	rack *Rack
	spec Spec
	addr netip.Addr // reserved

	power sync.Mutex // one switch at a time

	mu      sync.Mutex
	state   State
	faults  Faults
	next    lab.BootFrom // for one boot
	life    *life        // nil: off
	disks   []*disk
	lines   []string // of the console
	link    net.Conn // the worker's connection
	boots   int
	asked   time.Time     // when the last boot sent its first packet
	changed chan struct{} // closed and made anew at each change of the state
}

// life is from power on to power off.
type life struct {
	cancel context.CancelFunc
	done   chan struct{}
	reset  context.CancelFunc // of the boot under way
}

var _ rig.Switched = (*Machine)(nil)

func newMachine(r *Rack, s Spec, a netip.Addr) *Machine {
	m := &Machine{rack: r, spec: s, addr: a, state: Off, faults: s.Faults, changed: make(chan struct{})}
	for _, d := range s.Disks {
		layout := d.Layout.Clone()
		if layout == nil {
			layout = blank()
		}
		m.disks = append(m.disks, &disk{Disk: d, layout: layout})
	}
	return m
}

// Name is that of the machine and its record.
func (m *Machine) Name() string { return m.spec.Name }

// MAC is that of its card.
func (m *Machine) MAC() net.HardwareAddr { return m.spec.hardwareAddr() }

// Addr is the address that is reserved for it.
func (m *Machine) Addr() netip.Addr { return m.addr }

// HTTPClient is for what runs on the machine: it comes from the machine's address.
func (m *Machine) HTTPClient() *http.Client {
	return &http.Client{Transport: m.rack.wire.transport(m.addr), Timeout: time.Minute}
}

// Record is the machine for the API: its card with a reserved address, and the rack's
// power controller.
func (m *Machine) Record() *hardware.Hardware {
	return &hardware.Hardware{
		Meta: hardware.Meta{Name: m.spec.Name, Labels: m.spec.Labels},
		Spec: hardware.Spec{
			Interfaces: []hardware.NIC{{MAC: m.spec.MAC, Addresses: []netip.Prefix{netip.PrefixFrom(m.addr, m.rack.o.Lab.Subnet().Bits())}}},
			Arch:       m.spec.Arch, Rack: m.spec.Rack, Power: m.rack.power.Control(),
		},
	}
}

// Facts are what a worker reports of it.
func (m *Machine) Facts() hardware.Facts {
	f := m.spec.facts()
	m.look(context.Background(), f.Disks)
	return f
}

// State is what it does, whatever its BMC says.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Await waits until is says true, and asks at each change of the state or the disks. Its
// error is that of ctx, with the state that there is.
func (m *Machine) Await(ctx context.Context, is func(*Machine) bool) error {
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		if is(m) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("machine %s is %s: %w", m.Name(), m.State(), ctx.Err())
		}
	}
}

// Installed is the system that the machine boots from its disk.
func (m *Machine) Installed() (*System, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.disks {
		if d.system != nil {
			return d.system.clone(), true
		}
	}
	return nil, false
}

// Boots counts how often its firmware began.
func (m *Machine) Boots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boots
}

// Console is the end of what was printed, oldest first.
func (m *Machine) Console() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lines)
}

// consoleLines are kept of a console.
const consoleLines = 100

func (m *Machine) say(format string, args ...any) {
	line := time.Now().UTC().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	m.mu.Lock()
	m.lines = append(m.lines, line)
	if n := len(m.lines); n > consoleLines {
		m.lines = slices.Delete(m.lines, 0, n-consoleLines)
	}
	m.mu.Unlock()
	if m.rack.o.Say != nil {
		m.rack.o.Say("%s: %s", m.spec.Name, line)
	}
}

// SetFaults changes what is wrong with the machine.
func (m *Machine) SetFaults(change func(f *Faults)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.faults)
}

// DropConnection cuts the worker's connection, as a switch that restarts does; it says
// whether there was one.
func (m *Machine) DropConnection() bool {
	m.mu.Lock()
	c := m.link
	m.link = nil
	m.mu.Unlock()
	if c == nil {
		return false
	}
	_ = c.Close()
	return true
}

// Running is what the BMC says.
func (m *Machine) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil && !m.faults.Lie
}

// SetNextBoot has the next boot be from there, once.
func (m *Machine) SetNextBoot(from lab.BootFrom) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.NoBMC {
		return errNoBMC
	}
	m.next = from
	return nil
}

var errNoBMC = errors.New("the BMC does not answer")

// QMP answers what the power controller asks.
func (m *Machine) QMP(_ context.Context, command string, _ map[string]any, out any) error {
	if command != "query-status" {
		return fmt.Errorf("%s: %w", command, errors.ErrUnsupported)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.NoBMC {
		return errNoBMC
	}
	return json.Unmarshal([]byte(`{"status": "running"}`), out)
}

// PowerOn switches it on; it is an error where it is.
func (m *Machine) PowerOn(context.Context) error {
	m.power.Lock()
	defer m.power.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.faults.NoBMC:
		return errNoBMC
	case m.life != nil && m.faults.Lie:
		return nil
	case m.life != nil && m.faults.KeepOn: // a cycle of which the first half did nothing
		return nil
	case m.life != nil:
		return fmt.Errorf("machine %s: is on already", m.spec.Name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{cancel: cancel, done: make(chan struct{})}
	m.life = l
	go m.run(ctx, l)
	return nil
}

// PowerOff takes the power away and returns when nothing runs any more.
func (m *Machine) PowerOff() error {
	m.mu.Lock()
	f := m.faults
	m.mu.Unlock()
	switch {
	case f.NoBMC:
		return errNoBMC
	case f.KeepOn || f.Lie:
		return nil
	}
	m.pull()
	return nil
}

// Cycle takes the power away and gives it back.
func (m *Machine) Cycle(ctx context.Context) error {
	return errors.Join(m.PowerOff(), m.PowerOn(ctx))
}

// Pull takes the power away whatever the BMC says, as a hand at the cable does.
func (m *Machine) Pull() { m.pull() }

// stopTime is how long what runs may take to stop.
const stopTime = 15 * time.Second

func (m *Machine) pull() {
	m.power.Lock()
	defer m.power.Unlock()
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	if l == nil {
		return
	}
	l.cancel()
	limit := time.NewTimer(stopTime)
	defer limit.Stop()
	select {
	case <-l.done:
	case <-limit.C:
		m.say("something does not stop when the power goes (Options.OS must return when its context ends)")
	}
}

// Reset restarts the machine from within, as `reboot` does in its system.
func (m *Machine) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != nil && m.life.reset != nil {
		m.life.reset()
	}
}

// Halt switches the machine off from within, as `poweroff` does in its system. It does
// not wait.
func (m *Machine) Halt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != nil {
		m.life.cancel()
	}
}

func (m *Machine) set(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
	m.notify()
}

// notify wakes who waits in Await. m.mu is held.
func (m *Machine) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}
