package bmc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

const secret = "correct horse battery staple"

// receiver answers calls with good signatures through answer and remembers them.
type receiver struct {
	*httptest.Server
	answer func(w http.ResponseWriter, n int, c bmc.Call)

	mu    sync.Mutex
	calls []bmc.Call
	bad   []error // what was wrong with the others
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, n int, c bmc.Call)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(r)
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, bmc.MaxCall))
	if err == nil {
		err = bmc.Verify(secret, req.Header.Get(bmc.SignatureHeader), body, time.Now())
	}
	var c bmc.Call
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err == nil && req.Method != http.MethodPost {
		err = fmt.Errorf("method %s", req.Method)
	}
	r.mu.Lock()
	if err != nil {
		r.bad = append(r.bad, err)
		r.mu.Unlock()
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	r.calls = append(r.calls, c)
	n := len(r.calls)
	r.mu.Unlock()
	r.answer(w, n, c)
}

func (r *receiver) seen() []bmc.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]bmc.Call(nil), r.calls...)
}

// says answers every call alike.
func says(code int, body string) func(http.ResponseWriter, int, bmc.Call) {
	return func(w http.ResponseWriter, _ int, _ bmc.Call) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// machine has a webhook at url.
func machine(name, url string) *hardware.Hardware {
	return &hardware.Hardware{
		Meta: hardware.Meta{Name: name, UID: "uid-" + name, Labels: map[string]string{"pdu": "b7"}},
		Spec: hardware.Spec{
			Interfaces: []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 1}}, {MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 2}}},
			Rack:       "a1", Position: "12", AssetTag: "0042",
			Power: &hardware.PowerControl{Driver: hardware.PowerWebhook, URL: url, Secret: secret},
		},
		Facts: &hardware.Facts{Firmware: "uefi"},
	}
}

// waits are the pauses between tries, which tests do not sit through.
type waits struct {
	mu   sync.Mutex
	list []time.Duration
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	w.list = append(w.list, d)
	w.mu.Unlock()
	return ctx.Err()
}

// options have ids that count, and no pauses.
func options() (bmc.Options, *waits) {
	var mu sync.Mutex
	n, w := 0, &waits{}
	return bmc.Options{
		NewID: func(time.Time) string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("id-%d", n)
		},
		Wait: w.wait,
	}, w
}
