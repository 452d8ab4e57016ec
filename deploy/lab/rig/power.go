package rig

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

// Switched is what Power needs of a machine; *lab.Machine is one.
type Switched interface {
	Name() string
	MAC() net.HardwareAddr
	Running() bool
	PowerOn(ctx context.Context) error
	PowerOff() error
	SetNextBoot(from lab.BootFrom) error
	QMP(ctx context.Context, command string, args map[string]any, out any) error
}

var _ Switched = (*lab.Machine)(nil)

// Power is the power controller of a lab's machines: the receiver of the calls that
// the appliance's webhook driver makes (deploy/docs/power.md).
type Power struct {
	secret string
	url    string
	now    func() time.Time
	server *http.Server

	mu       sync.Mutex
	machines []*outlet
	obeyed   map[string]obeyed // by the call's id
	calls    []bmc.Call        // that were obeyed, oldest first
}

// outlet is one machine's; calls for it take turns.
type outlet struct {
	sync.Mutex
	machine Switched
}

type obeyed struct {
	at    time.Time
	body  []byte
	reply bmc.Reply
}

func newPower(now func() time.Time) *Power {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	return &Power{secret: hex.EncodeToString(secret), now: now, obeyed: map[string]obeyed{}}
}

// StartPower listens on the loopback of the namespace that the appliance is in. The
// machines are those given to Add.
func StartPower(ctx context.Context, ns *lab.Namespace) (*Power, error) {
	p := newPower(time.Now)
	ln, err := ns.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.url = "http://" + ln.Addr().String() + "/power"
	p.server = &http.Server{Handler: p, ReadTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(ln) }() // until Close
	return p, nil
}

// Close stops listening. The machines stay as they are.
func (p *Power) Close() error { return p.server.Close() }

// Add lets a machine be switched; one that is added already is left alone.
func (p *Power) Add(m Switched) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.machines, func(o *outlet) bool { return o.machine == m }) {
		return
	}
	p.machines = append(p.machines, &outlet{machine: m})
}

// Control is what the records of the machines say.
func (p *Power) Control() *hardware.PowerControl {
	return &hardware.PowerControl{Driver: hardware.PowerWebhook, URL: p.url, Secret: p.secret}
}

// Calls are the calls that were obeyed, oldest first; repeats are not in it.
func (p *Power) Calls() []bmc.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// ServeHTTP obeys one call.
func (p *Power) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, reply := p.serve(w, r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(reply) // the caller asks again
}

func (p *Power) serve(w http.ResponseWriter, r *http.Request) (int, bmc.Reply) {
	no := func(code int, format string, args ...any) (int, bmc.Reply) {
		return code, bmc.Reply{Message: fmt.Sprintf(format, args...)}
	}
	if r.Method != http.MethodPost {
		return no(http.StatusMethodNotAllowed, "use POST")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bmc.MaxCall))
	if err != nil {
		return no(http.StatusRequestEntityTooLarge, "%v", err)
	}
	if err := bmc.Verify(p.secret, r.Header.Get(bmc.SignatureHeader), body, p.now()); err != nil {
		return no(http.StatusForbidden, "%v", err)
	}
	var call bmc.Call
	if err := json.Unmarshal(body, &call); err != nil || call.ID == "" || call.Version != bmc.Version {
		return no(http.StatusBadRequest, "not a call of version %d", bmc.Version)
	}
	o := p.outlet(call.Machine.MACs)
	if o == nil {
		return no(http.StatusNotFound, "no machine of this lab has one of these MACs")
	}
	// In this order a repeat waits for the first one's end.
	o.Lock()
	defer o.Unlock()
	if old, ok := p.known(call.ID); ok {
		if !bytes.Equal(old.body, body) {
			return no(http.StatusConflict, "id %.40q was another call's", call.ID)
		}
		return http.StatusOK, old.reply
	}
	reply, err := obey(r.Context(), o.machine, call)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return no(http.StatusNotImplemented, "%v", err)
	case err != nil:
		return no(http.StatusInternalServerError, "%v", err)
	}
	p.remember(call, body, reply)
	return http.StatusOK, reply
}

// outlet is the machine with one of these MACs, or nil.
func (p *Power) outlet(macs []hardware.MAC) *outlet {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.machines {
		if slices.Contains(macs, hardware.MAC(o.machine.MAC())) {
			return o
		}
	}
	return nil
}

func (p *Power) known(id string) (obeyed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, ok := p.obeyed[id]
	return old, ok
}

// remember forgets what is so old that its signature would be refused.
func (p *Power) remember(call bmc.Call, body []byte, reply bmc.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, old := range p.obeyed {
		if p.now().Sub(old.at) > 2*bmc.MaxSkew {
			delete(p.obeyed, id)
		}
	}
	p.obeyed[call.ID] = obeyed{p.now(), body, reply}
	p.calls = append(p.calls, call)
}

// obey does what a call asks for. A machine is started for longer than its caller
// waits for the answer.
func obey(ctx context.Context, m Switched, call bmc.Call) (bmc.Reply, error) {
	ctx = context.WithoutCancel(ctx)
	var err error
	switch call.Action {
	case bmc.ActionStatus:
	case bmc.ActionNextBoot:
		err = m.SetNextBoot(lab.BootFrom(call.NextBoot))
	case bmc.ActionOff:
		err = m.PowerOff()
	case bmc.ActionOn:
		if !m.Running() {
			err = m.PowerOn(ctx)
		}
	case bmc.ActionCycle:
		if err = m.PowerOff(); err == nil {
			err = m.PowerOn(ctx)
		}
	default:
		return bmc.Reply{}, fmt.Errorf("action %.40q: %w", call.Action, errors.ErrUnsupported)
	}
	if err != nil {
		return bmc.Reply{}, err
	}
	return status(ctx, m)
}

// status is what QEMU says; a machine whose QEMU has ended is off.
func status(ctx context.Context, m Switched) (bmc.Reply, error) {
	off := bmc.Reply{Power: string(hardware.PowerOff)}
	if !m.Running() {
		return off, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var said struct{ Status string }
	if err := m.QMP(ctx, "query-status", nil, &said); err != nil {
		if !m.Running() { // it ended meanwhile
			return off, nil
		}
		return bmc.Reply{}, err
	}
	reply := bmc.Reply{Power: string(hardware.PowerOn)}
	if said.Status != "running" {
		reply.Message = m.Name() + " is " + said.Status
	}
	return reply, nil
}
