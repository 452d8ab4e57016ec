package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/deploy/lab/stage"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// deeds are what the tests in the browser can have done to the world around the page, by
// name; each answers with a value for JSON, or nil.
type deeds map[string]func(ctx context.Context, q url.Values) (any, error)

// newControl serves what can be done on a stage, on loopback, and gives its URL.
func newControl(t *testing.T, s *stage.Stage) string {
	t.Helper()
	all := daemonDeeds(s.Appliance)
	// power: machine, action (on, off): a hand at the button.
	all["power"] = func(ctx context.Context, q url.Values) (any, error) {
		m := s.Rack.Machine(q.Get("machine"))
		switch {
		case m == nil:
			return nil, fmt.Errorf("machine %q: there is none", q.Get("machine"))
		case q.Get("action") == "off":
			m.Pull()
			return nil, nil
		}
		return nil, m.PowerOn(ctx)
	}
	// stray: mac, name: something that nobody knows asks for an address once.
	all["stray"] = func(_ context.Context, q url.Values) (any, error) {
		mac, err := net.ParseMAC(q.Get("mac"))
		if err != nil {
			return nil, err
		}
		return nil, s.Rack.Stray(hardware.MAC(mac), q.Get("name"))
	}
	// add: name, action (how long each takes), fail (an action that always does), disks
	// (their sizes in GB), unknown (it has no record), hostile (its facts are): a machine
	// more in the rack.
	all["add"] = func(ctx context.Context, q url.Values) (any, error) {
		spec := sim.Spec{Name: q.Get("name"), Labels: map[string]string{"added": "test"}}
		if d := q.Get("action"); d != "" {
			var err error
			if spec.Faults.ActionTime, err = time.ParseDuration(d); err != nil {
				return nil, err
			}
		}
		if k := q.Get("fail"); k != "" {
			spec.Faults.Fail = map[workflow.Kind]int{workflow.Kind(k): 1000}
		}
		for size := range strings.FieldsSeq(q.Get("disks")) {
			gb, err := strconv.ParseInt(size, 10, 64)
			if err != nil {
				return nil, err
			}
			spec.Disks = append(spec.Disks, sim.Disk{Bytes: gb * 1e9})
		}
		if q.Get("hostile") != "" {
			spec.Facts, spec.Log = hostile, hostileLog
		}
		if q.Get("unknown") == "" {
			_, err := s.Add(ctx, spec, nil)
			return nil, err
		}
		m, err := s.Rack.Add(spec)
		if err != nil {
			return nil, err
		}
		return map[string]string{"mac": m.MAC().String()}, nil
	}
	// site: mib, rate (bytes a second), cut (the first answer breaks off after so many
	// bytes): a web server with a disk image, which the appliance reaches.
	all["site"] = func(_ context.Context, q url.Values) (any, error) { return newSite(t, s.Lab, q) }
	// scrawl: workflow, action (from 0), attempt (from 1), what (hostile, long or line): bytes
	// that no worker of ours writes, in the log of an attempt.
	all["scrawl"] = func(ctx context.Context, q url.Values) (any, error) {
		w, err := s.API.Workflows.Get(ctx, q.Get("workflow"))
		if err != nil {
			return nil, err
		}
		action, err := strconv.Atoi(q.Get("action"))
		if err != nil {
			return nil, err
		}
		attempt, err := strconv.Atoi(q.Get("attempt"))
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(filepath.Join(filepath.Dir(s.Appliance.Config), "data", "logs", w.Meta.UID, fmt.Sprintf("%02d-%03d.log", action, attempt-1)), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		_, err = f.WriteString(scrawls()[q.Get("what")])
		return nil, errors.Join(err, f.Close())
	}
	// crowd: n: so many records that no machine stands behind.
	all["crowd"] = func(ctx context.Context, q url.Values) (any, error) {
		n, err := strconv.Atoi(q.Get("n"))
		if err != nil {
			return nil, err
		}
		return nil, s.FillCrowd(ctx, n)
	}
	return serveDeeds(t, all)
}

// daemonDeeds are those that every appliance has.
func daemonDeeds(a *rig.Appliance) deeds {
	return deeds{
		// kill ends the daemon without a farewell; start starts it again.
		"kill":  func(context.Context, url.Values) (any, error) { return nil, a.Kill() },
		"start": func(ctx context.Context, _ url.Values) (any, error) { return nil, a.Start(context.WithoutCancel(ctx)) },
		// memory is what the daemon holds, in MiB.
		"memory": func(context.Context, url.Values) (any, error) {
			now, peak := a.MemoryMiB()
			return map[string]float64{"now": now, "peak": peak}, nil
		},
	}
}

func serveDeeds(t *testing.T, all deeds) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: all, ReadTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// ServeHTTP does one.
func (d deeds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	do := d[strings.TrimPrefix(r.URL.Path, "/")]
	if do == nil || r.Method != http.MethodPost {
		http.Error(w, r.Method+" "+r.URL.Path+": no such deed", http.StatusNotFound)
		return
	}
	out, err := do(r.Context(), r.URL.Query())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case out != nil:
		_ = json.NewEncoder(w).Encode(out) // the test asks again or fails
	}
}

// hostileLog is what a worker says that is not ours.
const hostileLog = "\x1b]0;title\x07\x1b[2J\x1b[31m<script>alert('log')</script><img src=x onerror=alert('log')>"

// scrawls are what may stand in a log.
func scrawls() map[string]string {
	var long strings.Builder
	for i := 0; long.Len() < 4<<20; i++ {
		fmt.Fprintf(&long, "line %d of many, größer € 𝄞 %s\n", i, strings.Repeat("x", i%100))
	}
	return map[string]string{
		"hostile": hostileLog + "\n\xff\xfe\xc0\x80\xed\xa0\x80 \u202eevil\u2066 \x9b31m\r\x00\nhalf a character: \xe2\x82\n" + strings.Repeat("<img src=x onerror=alert(1)>", 5000) + "\n",
		"long":    long.String(),
		"line":    "one line more\n",
	}
}

// hostile makes every text that a machine can say of itself one that a careless page would
// run, or break at.
func hostile(f *hardware.Facts) {
	const script, image = `<script>alert("fact")</script>`, `"><img src=x onerror=alert(1)>`
	f.Vendor, f.Product, f.CPUModel = script, image, "\u202egnp.exe\u202c "+strings.Repeat("W", 100<<10)
	f.Serial, f.AssetTag, f.BIOS = "\x1b[31mred\x1b[0m\x07", "javascript:alert(1)", "{{constructor.constructor('alert(1)')()}}"
	f.Kernel = script
	for i := range f.NICs {
		f.NICs[i].Name, f.NICs[i].Driver = `eth0' onmouseover='alert(1)`, script
	}
	for i := range f.Disks {
		f.Disks[i].Model, f.Disks[i].Serial = image, script
	}
}
