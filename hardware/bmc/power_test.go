package bmc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

func dialTo(addr string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

// TestADriverThatPanics is a call that failed, and the machine's next call goes on.
func TestADriverThatPanics(t *testing.T) {
	t.Parallel()
	o, _ := options()
	o.NewID = func(time.Time) string { panic("no id") }
	p := bmc.NewPower(o, nil)
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{
		Power: &hardware.PowerControl{Driver: hardware.PowerWebhook, URL: "http://10.0.0.9/power", Secret: strings.Repeat("s", 16)},
	}}
	for range 2 {
		var no *bmc.Refused
		if _, err := p.Do(t.Context(), h, "on", ""); !errors.As(err, &no) || !strings.Contains(err.Error(), "no id") {
			t.Errorf("got %v", err)
		}
	}
}

// TestManual: what a person reads, by what the record says of the place.
func TestManual(t *testing.T) {
	t.Parallel()
	mac := []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 1}}}
	for _, tc := range []struct {
		spec           hardware.Spec
		action, device string
		want           string
	}{
		{hardware.Spec{Rack: "a1", Position: "12"}, "on", "", "switch m1 on (rack a1, position 12); it continues at its next DHCP packet"},
		{hardware.Spec{Rack: "a1", AssetTag: "0042"}, "on", "network", "switch m1 on (rack a1, asset tag 0042) and let it boot from the network; it continues at its next DHCP packet"},
		{hardware.Spec{Interfaces: mac}, "cycle", "network", "switch m1 on, or off and on again if it is on (MAC 52:54:00:00:00:01) and let it boot from the network; it continues at its next DHCP packet"},
		{hardware.Spec{Rack: "a1", Power: &hardware.PowerControl{Driver: hardware.PowerManual}}, "on", "disk", "switch m1 on (rack a1) and let it boot its disk"},
		{hardware.Spec{}, "off", "", "switch m1 off"},
		{hardware.Spec{Rack: "a1"}, "status", "", "nothing tells whether m1 is on: look at it (rack a1)"},
	} {
		o, _ := options()
		h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: tc.spec}
		out, err := bmc.NewPower(o, nil).Do(t.Context(), h, tc.action, tc.device)
		if want := (bmc.Outcome{Driver: "manual", Message: tc.want}); err != nil || out != want {
			t.Errorf("%s %s: %+v, %v, want %+v", tc.action, tc.device, out, err, want)
		}
	}
	d, err := bmc.New(&hardware.Hardware{Meta: hardware.Meta{Name: "m1"}}, bmc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var hand *bmc.ByHand
	if _, err := d.On(t.Context()); !errors.As(err, &hand) || hand.Do != "switch m1 on" || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("the driver alone: %v", err)
	}
}

// TestNotAsked: what nobody can be asked is refused before a call is made.
func TestNotAsked(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, says(200, "{}"))
	r.Start()
	for name, tc := range map[string]struct {
		change         func(*hardware.PowerControl)
		action, device string
		says           string
	}{
		"action":      {nil, "explode", "", `action "explode" is not known (on, off, cycle or status)`},
		"no action":   {nil, "", "network", `action "" is not known`},
		"next boot":   {nil, "next-boot", "disk", `action "next-boot" is not known`},
		"device":      {nil, "on", "floppy", `next boot "floppy" is not known (network or disk)`},
		"off and net": {nil, "off", "network", "a next boot goes with on and cycle, not with off"},
		"driver":      {func(p *hardware.PowerControl) { p.Driver = "ipmi" }, "on", "", `spec.power.driver: "ipmi" is not known (manual or webhook)`},
		"URL":         {func(p *hardware.PowerControl) { p.URL = "power" }, "on", "", "spec.power.url is not an http(s) URL"},
		"CA":          {func(p *hardware.PowerControl) { p.CA = "x" }, "on", "", "spec.power.ca has no certificate"},
	} {
		h := machine("m1", r.URL)
		if tc.change != nil {
			tc.change(h.Spec.Power)
		}
		o, _ := options()
		_, err := bmc.NewPower(o, nil).Do(t.Context(), h, tc.action, tc.device)
		var no *bmc.Refused
		if !errors.As(err, &no) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
	if n := len(r.seen()); n > 0 {
		t.Errorf("%d calls", n)
	}
}

// TestNextBootUnsupported: the rest is done, and people read it.
func TestNextBootUnsupported(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ int, c bmc.Call) {
		if c.Action == bmc.ActionNextBoot {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		_, _ = io.WriteString(w, `{"power":"on"}`)
	})
	r.Start()
	o, _ := options()
	out, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", r.URL), "cycle", "network")
	if want := (bmc.Outcome{Driver: "webhook", State: hardware.PowerOn, Message: "its controller cannot set the next boot to network"}); err != nil || out != want {
		t.Errorf("%+v, %v, want %+v", out, err, want)
	}
}

// TestNextBootFails: a machine that would boot the wrong thing is not switched.
func TestNextBootFails(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, says(403, ""))
	r.Start()
	o, _ := options()
	_, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", r.URL), "on", "network")
	if calls := r.seen(); err == nil || len(calls) != 1 || calls[0].Action != bmc.ActionNextBoot {
		t.Errorf("%v after %+v", err, calls)
	}
}

// TestStorm: a rack at once is 8 calls at a time at its receiver and 16 in all, one
// per machine, and every machine gets its turn.
func TestStorm(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most, byMachine := map[string]int{}, map[string]int{}, map[string]int{}
	all, mostAll := 0, 0
	full := make(chan struct{})
	enter := func(name string) func(http.ResponseWriter, int, bmc.Call) {
		return func(w http.ResponseWriter, _ int, c bmc.Call) {
			mu.Lock()
			now[name]++
			all++
			byMachine[c.Machine.UID]++
			most[name], mostAll = max(most[name], now[name]), max(mostAll, all)
			if byMachine[c.Machine.UID] > 1 {
				t.Errorf("two calls for %s at a time", c.Machine.Name)
			}
			if mostAll == bmc.MaxCalls && all == bmc.MaxCalls {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			<-full // nobody leaves before it was full
			mu.Lock()
			now[name]--
			all--
			byMachine[c.Machine.UID]--
			mu.Unlock()
			_, _ = io.WriteString(w, `{"power":"on"}`)
		}
	}
	o, _ := options()
	o.Timeout = time.Minute
	p := bmc.NewPower(o, nil)
	var wg sync.WaitGroup
	for i := range 3 {
		r := newReceiver(t, enter(fmt.Sprint(i)))
		r.Start()
		for j := range 40 {
			h := machine(fmt.Sprintf("m%d-%d", i, j/2), r.URL) // each machine twice
			wg.Go(func() {
				if out, err := p.Do(t.Context(), h, "on", "network"); err != nil || out.State != hardware.PowerOn {
					t.Errorf("%s: %+v, %v", h.Meta.Name, out, err)
				}
			})
		}
	}
	wg.Wait()
	for name, n := range most {
		if n > bmc.MaxCallsReceiver {
			t.Errorf("receiver %s had %d calls at a time, want %d at most", name, n, bmc.MaxCallsReceiver)
		}
	}
	if mostAll != bmc.MaxCalls {
		t.Errorf("%d calls at a time, want %d", mostAll, bmc.MaxCalls)
	}
}

// TestWaitingTakesNoPlace: while dead receivers are waited for, others are called.
func TestWaitingTakesNoPlace(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, says(200, `{"power":"on"}`))
	r.Start()
	o, _ := options()
	waiting, goOn := make(chan struct{}, 2*bmc.MaxCalls), make(chan struct{})
	o.Wait = func(context.Context, time.Duration) error {
		waiting <- struct{}{}
		<-goOn
		return errors.New("enough")
	}
	good := dialTo(r.Listener.Addr().String())
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "dead") {
			return nil, errors.New("no route to host")
		}
		return good(ctx, network, addr)
	}
	p := bmc.NewPower(o, nil)
	var wg sync.WaitGroup
	for i := range 2 * bmc.MaxCalls {
		wg.Go(func() {
			var down *bmc.Unreachable
			if _, err := p.Do(t.Context(), machine(fmt.Sprint("m", i), "http://dead.test/"), "on", ""); !errors.As(err, &down) {
				t.Error(err)
			}
		})
	}
	for range 2 * bmc.MaxCalls {
		<-waiting
	}
	if out, err := p.Do(t.Context(), machine("alive", "http://alive.test/"), "on", ""); err != nil || out.State != hardware.PowerOn {
		t.Errorf("%+v, %v", out, err)
	}
	// A second request for a machine that is being waited for ends with its caller.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Do(ctx, machine("m0", "http://alive.test/"), "off", ""); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another request for this machine") {
		t.Errorf("a second request: %v", err)
	}
	close(goOn)
	wg.Wait()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	r := newReceiver(t, func(w http.ResponseWriter, _ int, c bmc.Call) {
		if c.Action == bmc.ActionOff {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	r.Start()
	o, _ := options()
	p := bmc.NewPower(o, bmc.NewMetrics(reg))
	for _, action := range []string{"on", "on", "off", "no such \xff"} {
		_, _ = p.Do(t.Context(), machine("m1", r.URL), action, "")
	}
	_, _ = p.Do(t.Context(), &hardware.Hardware{Meta: hardware.Meta{Name: "m2"}}, "cycle", "")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"rackstrap_power_requests_total cycle manual by-hand":    1,
		"rackstrap_power_requests_total off webhook refused":     1,
		"rackstrap_power_requests_total on webhook done":         2,
		"rackstrap_power_requests_total unknown webhook refused": 1,
		"rackstrap_power_request_seconds":                        5,
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
