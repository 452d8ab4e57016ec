package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
)

// outcome is what comes after a boot.
type outcome int

const (
	again   outcome = iota // it restarts
	off                    // it switches itself off
	nothing                // the firmware found nothing to boot
)

// run is the machine from power on to power off.
func (m *Machine) run(ctx context.Context, l *life) {
	defer func() {
		l.cancel()
		m.mu.Lock()
		m.state, m.life, m.link = Off, nil, nil
		m.notify()
		m.mu.Unlock()
		close(l.done)
	}()
	m.say("power on")
	if m.hangs() {
		m.say("hangs")
		m.set(Hung)
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		bctx, reset := context.WithCancel(ctx)
		m.mu.Lock()
		l.reset = reset
		m.boots++
		m.mu.Unlock()
		o := m.boot(bctx)
		reset()
		switch {
		case o == off:
			m.say("switches itself off")
			return
		case o == nothing:
			m.say("nothing to boot; trying again in %v", m.rack.o.Retry)
			pause(ctx, m.rack.o.Retry)
		}
	}
}

// hangs reports whether this power on is one of those that lead nowhere.
func (m *Machine) hangs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.Hang == 0 {
		return false
	}
	m.faults.Hang--
	return true
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// boot goes through the firmware's order, the network and then the disk, or what the BMC
// asked for instead.
func (m *Machine) boot(ctx context.Context) outcome {
	m.set(Firmware)
	m.mu.Lock()
	from := m.next
	m.next = ""
	m.mu.Unlock()
	if from == lab.FromDisk {
		if o := m.bootDisk(ctx); o != nothing {
			return o
		}
	}
	o, err := m.bootNetwork(ctx)
	if err != nil {
		m.say("network boot: %v", err)
	}
	if o != nothing || ctx.Err() != nil {
		return o
	}
	return m.bootDisk(ctx)
}

// bootNetwork returns nothing where the next device is to be booted; its error says why,
// where that is not what it was told.
func (m *Machine) bootNetwork(ctx context.Context) (outcome, error) {
	m.post(ctx)
	for try := 1; ; try++ {
		got, err := ipxeClient(m.spec.MAC).obtain(ctx, m.rack.wire)
		switch {
		case err != nil:
			return nothing, err
		case got.file == "":
			m.say("%s and nothing to load", got.addr)
			return nothing, nil
		}
		script, err := m.fetch(ctx, got.addr, got.file)
		if err != nil {
			return nothing, err
		}
		v := readScript(script)
		m.say("%s: the script says %s", got.addr, v.what)
		switch {
		case v.what == bootKernel:
			return m.runWorker(ctx, got.addr, v.args)
		case v.what == switchOff:
			return off, nil
		case v.what == startAgain:
			pause(ctx, m.rack.o.Retry)
			return again, nil
		case v.what == nextDevice, try == 5:
			return nothing, nil
		}
		pause(ctx, m.rack.o.Retry)
	}
}

// postTime is what firmware takes from its start to its first packet, at least: the
// appliance takes one that comes earlier for a repeat of the last boot's.
const postTime = 2500 * time.Millisecond

// post waits until the last boot's first packet is so long ago.
func (m *Machine) post(ctx context.Context) {
	m.mu.Lock()
	last := m.asked
	m.mu.Unlock()
	pause(ctx, postTime-time.Since(last))
	m.mu.Lock()
	m.asked = time.Now()
	m.mu.Unlock()
}

// maxScript is more than any script of ours has, in bytes.
const maxScript = 1 << 20

// fetch gets a text. It goes on asking while the server is away, as our scripts do.
func (m *Machine) fetch(ctx context.Context, from netip.Addr, url string) (string, error) {
	c := http.Client{Transport: m.rack.wire.transport(from), Timeout: time.Minute}
	for try := 1; ; try++ {
		text, err := get(ctx, &c, url)
		if err == nil || ctx.Err() != nil || try == 5 {
			return text, err
		}
		pause(ctx, time.Duration(try)*time.Second)
	}
}

func get(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxScript))
	return string(b), err
}

// faultPause is how long a worker that cannot go on shows why.
const faultPause = 3 * time.Second

// runWorker is the worker's own session, with the machine's address and runners.
func (m *Machine) runWorker(ctx context.Context, from netip.Addr, args string) (outcome, error) {
	p, err := worker.ParseCommandLine(args)
	if err != nil {
		return nothing, err
	}
	began := time.Now()
	s, err := worker.NewSession(worker.Config{
		Params: p, Version: "simulated", Runners: m.runners(from),
		Env:      func() action.Env { return action.Env{HTTPBase: p.HTTP, MACs: []string{m.spec.MAC.String()}} },
		Facts:    func(_ context.Context, report func(hardware.Facts)) { report(m.Facts()) },
		Look:     m.look,
		SetClock: func(time.Time) error { return nil },
		Uptime:   func() time.Duration { return time.Since(began) },
		Say:      m.say,
		Dial: func(ctx context.Context, to string) (net.Conn, error) {
			c, err := m.rack.wire.dial(ctx, from, to)
			if err == nil {
				m.mu.Lock()
				m.link = c
				m.mu.Unlock()
			}
			return c, err
		},
	})
	if err != nil {
		return nothing, err
	}
	m.set(Worker)
	e := s.Run(ctx)
	m.say("worker: %s: %s", e.What, e.Reason)
	switch {
	case ctx.Err() != nil:
		return again, nil
	case e.Fault:
		pause(ctx, faultPause)
	case e.What == pid1.PowerOff:
		return off, nil
	}
	return again, nil
}

// bootDisk runs what is installed until the machine restarts; nothing: no disk has a
// system.
func (m *Machine) bootDisk(ctx context.Context) outcome {
	m.mu.Lock()
	var s *System
	for _, d := range m.disks {
		if d.system != nil {
			d.system.Boots++
			s = d.system.clone()
			break
		}
	}
	m.mu.Unlock()
	if s == nil {
		return nothing
	}
	m.say("boots the system of %s (boot %d)", s.Disk, s.Boots)
	m.set(Running)
	// A system that is told no address asks for one.
	if strings.Contains(string(s.NetworkConfig), "dhcp4: true") {
		if _, err := systemClient(m.spec.MAC, m.spec.Name).obtain(ctx, m.rack.wire); err != nil && !errors.Is(err, context.Canceled) {
			m.say("the system has no address: %v", err)
		}
	}
	if m.rack.o.OS != nil && ctx.Err() == nil {
		m.rack.o.OS(ctx, m, s)
	}
	<-ctx.Done()
	return again
}
