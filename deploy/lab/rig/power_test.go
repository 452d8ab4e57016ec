package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

// plug is a machine without QEMU: it notes what is done to it.
type plug struct {
	mu     sync.Mutex
	on     bool
	did    []string
	fails  error         // of the next PowerOn
	status string        // of query-status
	hold   chan struct{} // PowerOn waits for it, where not nil
}

func (p *plug) note(s string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.did, p.on = append(p.did, s), on
}

func (p *plug) Name() string          { return "m1" }
func (p *plug) MAC() net.HardwareAddr { return net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1} }

func (p *plug) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

func (p *plug) PowerOn(ctx context.Context) error {
	if p.hold != nil {
		<-p.hold
	}
	if err := p.fails; err != nil {
		p.fails = nil
		return err
	}
	p.note("on", true)
	return ctx.Err()
}

func (p *plug) PowerOff() error { p.note("off", false); return nil }

func (p *plug) SetNextBoot(from lab.BootFrom) error {
	if from == lab.FromDisk {
		return fmt.Errorf("no disk: %w", errors.ErrUnsupported)
	}
	p.note("next "+string(from), p.Running())
	return nil
}

func (p *plug) QMP(_ context.Context, _ string, _ map[string]any, out any) error {
	return json.Unmarshal([]byte(`{"running": true, "status": "`+p.status+`"}`), out)
}

// send makes a call with a signature of that time and secret.
func send(p *Power, call bmc.Call, secret string, at time.Time) string {
	body, err := json.Marshal(call)
	if err != nil {
		panic(err) // unreachable: the type has nothing that cannot be written
	}
	r := httptest.NewRequest(http.MethodPost, "/power", strings.NewReader(string(body)))
	r.Header.Set(bmc.SignatureHeader, bmc.Sign(secret, at, body))
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}

// TestPowerStory: what the receiver answers, and what is done to the machine, in turn.
func TestPowerStory(t *testing.T) {
	t.Parallel()
	at := time.Now()
	m := &plug{status: "running"}
	p := newPower(func() time.Time { return at })
	p.Add(m)
	p.Add(m)
	mac := []hardware.MAC{{2}, hardware.MAC(m.MAC())}
	call := func(id string, a bmc.Action, from bmc.Device) bmc.Call {
		return bmc.Call{Version: bmc.Version, ID: id, Action: a, NextBoot: from, Machine: bmc.Machine{Name: "m1", MACs: mac}}
	}
	fail := func() { m.fails = errors.New("qemu did not start") }
	later := func(d time.Duration) func() { return func() { at = at.Add(d) } }
	for _, step := range []struct {
		name   string
		before func()
		call   bmc.Call
		secret string
		skew   time.Duration
		want   string // the beginning of the answer
		did    string
	}{
		{"begins off", nil, call("1", bmc.ActionStatus, ""), "", 0, `200 {"power":"off"}`, ""},
		{"another secret", nil, call("2", bmc.ActionOn, ""), "wrong", 0, `403 {"message":"the signature is not`, ""},
		{"recorded long ago", nil, call("2", bmc.ActionOn, ""), "", -6 * time.Minute, `403 {"message":"the time of the signature is more`, ""},
		{"from the future", nil, call("2", bmc.ActionOn, ""), "", 6 * time.Minute, `403 {"message":"the time of the signature is more`, ""},
		{"a clock that is a little off", nil, call("2", bmc.ActionNextBoot, bmc.Network), "", 4 * time.Minute, `200 {"power":"off"}`, "next network"},
		{"cannot", nil, call("3", bmc.ActionNextBoot, bmc.Disk), "", 0, `501 {"message":"no disk`, ""},
		{"fails", fail, call("4", bmc.ActionOn, ""), "", 0, `500 {"message":"qemu did not start"}`, ""},
		{"the repeat works", nil, call("4", bmc.ActionOn, ""), "", time.Second, `200 {"power":"on"}`, "on"},
		{"on is on", nil, call("5", bmc.ActionOn, ""), "", 0, `200 {"power":"on"}`, ""},
		{"cycle", nil, call("6", bmc.ActionCycle, ""), "", 0, `200 {"power":"on"}`, "off on"},
		{"replayed", nil, call("6", bmc.ActionCycle, ""), "", 0, `200 {"power":"on"}`, ""},
		{"replayed later", later(9 * time.Minute), call("6", bmc.ActionCycle, ""), "", -4 * time.Minute, `200 {"power":"on"}`, ""},
		{"its id for another", nil, call("6", bmc.ActionOff, ""), "", 0, `409 {"message":"id \"6\" was another`, ""},
		{"paused", func() { m.status = "paused" }, call("7", bmc.ActionStatus, ""), "", 0, `200 {"power":"on","message":"m1 is paused"}`, ""},
		{"off", nil, call("8", bmc.ActionOff, ""), "", 0, `200 {"power":"off"}`, "off"},
		{"a stranger", nil, bmc.Call{Version: 1, ID: "9", Action: bmc.ActionOn, Machine: bmc.Machine{Name: "m1"}}, "", 0, "404", ""},
		{"another version", nil, bmc.Call{Version: 2, ID: "9", Action: bmc.ActionOn, Machine: bmc.Machine{MACs: mac}}, "", 0, "400", ""},
		{"no id", nil, call("", bmc.ActionOn, ""), "", 0, "400", ""},
		{"another action", nil, call("9", "explode", ""), "", 0, "501", ""},
		{"long", nil, call(strings.Repeat("x", bmc.MaxCall), bmc.ActionOn, ""), "", 0, "413", ""},
	} {
		if step.before != nil {
			step.before()
		}
		if step.secret == "" {
			step.secret = p.Control().Secret
		}
		m.did = nil
		got := send(p, step.call, step.secret, at.Add(step.skew))
		if did := strings.Join(m.did, " "); !strings.HasPrefix(got, step.want) || did != step.did {
			t.Errorf("%s: %s and %q, want %s and %q", step.name, got, did, step.want, step.did)
		}
	}
	if n := len(p.Calls()); n != 7 {
		t.Errorf("%d calls were obeyed, want 7", n)
	}
	later(11 * time.Minute)()
	send(p, call("10", bmc.ActionStatus, ""), p.Control().Secret, at)
	if len(p.obeyed) != 1 {
		t.Errorf("remembers %d calls, want the last one", len(p.obeyed))
	}
}

// TestPowerRepeatDuringTheFirst: a caller that gave up asks again while its first call
// is being obeyed; the machine is started once.
func TestPowerRepeatDuringTheFirst(t *testing.T) {
	t.Parallel()
	m := &plug{status: "running", hold: make(chan struct{})}
	p := newPower(time.Now)
	p.Add(m)
	call := bmc.Call{Version: bmc.Version, ID: "1", Action: bmc.ActionCycle, Machine: bmc.Machine{MACs: []hardware.MAC{hardware.MAC(m.MAC())}}}
	answers := make(chan string)
	for range 3 {
		go func() { answers <- send(p, call, p.secret, time.Now()) }()
	}
	close(m.hold)
	for range 3 {
		if got := <-answers; got != `200 {"power":"on"}` {
			t.Error(got)
		}
	}
	if got := strings.Join(m.did, " "); got != "off on" {
		t.Errorf("did %q", got)
	}
}
