package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
)

// Rounds of the control plane's measurements.
const (
	starts   = 3
	requests = 100
	idle     = 20 * time.Second // watched for the cost of doing nothing
	settle   = 5 * time.Second
)

// control measures the control plane with many records: the real daemon, over its
// socket and over HTTPS. The records are in keep, or are made for once.
func control(ctx context.Context, keep string) error {
	fmt.Printf("\n== the control plane with %d machines, load %s\n", machines, load())
	dir, err := os.MkdirTemp("", "rsb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := fleetIn(ctx, keep, dir)
	if err != nil {
		return err
	}
	s, err := started(ctx, dir)
	if err != nil {
		return err
	}
	defer s.kill()
	wait(ctx, idle) // the event log is trimmed first
	fmt.Printf("%-44s %s, 300 MiB wanted\n", "resident", s.memory())
	if err := queries(ctx, s, f, dir); err != nil {
		return err
	}
	fmt.Printf("%-44s %s\n", "resident after that", s.memory())
	if err := claims(ctx, s, f); err != nil {
		return err
	}
	if err := sweeps(ctx, s); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return subscribers(ctx, dir, f)
}

// started starts the daemon several times, and leaves the last one.
func started(ctx context.Context, dir string) (*server, error) {
	var took, cpu []time.Duration
	var s *server
	for i := range starts {
		var err error
		if s, err = startServer(ctx, dir); err != nil {
			return nil, err
		}
		took, cpu = append(took, s.took), append(cpu, s.cpu())
		if i == starts-1 {
			break
		}
		if err := s.stop(); err != nil {
			return nil, err
		}
	}
	fmt.Printf("%-44s %6.0f ms, 3000 wanted (%.0f ms of processor time)\n", "start, from exec to readyz", ms(middle(took)), ms(middle(cpu)))
	return s, nil
}

// query is one request, and what it may take.
type query struct {
	what, path string
	wanted     time.Duration
	sql        string // the same of the peer
}

func queriesOf() []query {
	sel := func(s string) string { return "selector=" + url.QueryEscape(s) }
	const page = 50 * time.Millisecond
	const selected = 100 * time.Millisecond
	return []query{
		{"a page of 100", "?limit=100", page, "select doc from machine order by name limit 100"},
		{"a page of 100 in the middle, by rack", "?limit=100&sort=-rack", page, "select doc from machine order by doc->>'$.spec.rack' desc, name desc limit 100"},
		{"selector, 40 match", "?" + sel("rack=r117"), selected, "select doc from machine where doc->>'$.metadata.labels.rack'='r117' order by name"},
		{"selector with sets, 3333 match, 100 shown", "?limit=100&" + sel("site in (ams1,ams2),generation=g10,!broken"), selected, "select doc from machine where doc->>'$.metadata.labels.site' in ('ams1','ams2') and doc->>'$.metadata.labels.generation'='g10' and doc->>'$.metadata.labels.broken' is null order by name limit 100"},
		{"claimed=true&state=provisioned, 100 shown", "?limit=100&claimed=true&state=provisioned", selected, "select doc from machine where doc->>'$.status.claim' is not null and doc->>'$.status.state'='provisioned' order by name limit 100"},
		{"q= finds a serial number", "?q=sn000009999", selected, "select doc from machine where doc->>'$.facts.serial' like '%sn000009999%'"},
		{"one record", "/node-04711", page, "select doc from machine where name='node-04711'"},
		{"one that is not there (names its like)", "/nod-04711", page, ""},
		{"all 10,000", "", 0, "select doc from machine order by name"},
	}
}

// queries asks one after the other, over the socket and over HTTPS, and the peer.
func queries(ctx context.Context, s *server, f fleet, dir string) error {
	peer, err := newSQLite(ctx, s, dir)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-44s %8s | %8s %8s %8s | %8s %8s | %8s %6s\n", "GET /hardware, ms", "wanted", "socket", "p99", "CPU", "HTTPS", "p99", "sqlite3", "ratio")
	for _, q := range queriesOf() {
		n := requests
		if q.path == "" {
			n = 10
		}
		local, cpu, err := asked(ctx, s, s.socketDoor(), q, n)
		if err != nil {
			return err
		}
		remote, _, err := asked(ctx, s, s.httpsDoor(f.viewer), q, n)
		if err != nil {
			return err
		}
		theirs, ratio := "", ""
		if q.sql != "" {
			t, err := peer.ask(ctx, q.sql)
			if err != nil {
				return err
			}
			theirs = fmt.Sprintf("%.2f", ms(t))
			if t > 10*time.Microsecond { // less says nothing
				ratio = fmt.Sprintf("%.2f", ms(middle(local))/ms(t))
			}
		}
		wanted := ""
		if q.wanted > 0 {
			wanted = fmt.Sprintf("%.0f", ms(q.wanted))
		}
		fmt.Printf("%-44s %8s | %8.2f %8.2f %8.2f | %8.2f %8.2f | %8s %6s\n", q.what, wanted, ms(middle(local)), ms(late(local)), ms(cpu), ms(middle(remote)), ms(late(remote)), theirs, ratio)
	}
	fmt.Println("  sqlite3 reads the same JSON documents in its own process, warm, without HTTP; ratio is socket / sqlite3")
	return nil
}

// asked is how long each of n requests took, and the daemon's processor time of one.
func asked(ctx context.Context, s *server, d door, q query, n int) (took []time.Duration, cpu time.Duration, err error) {
	c := d.client()
	defer c.CloseIdleConnections()
	before := time.Duration(0)
	for i := range n + 3 {
		if i == 3 { // warm
			before = s.cpu()
		}
		began := time.Now()
		status, _, err := d.call(ctx, c, http.MethodGet, api.Base+"/hardware"+q.path, "")
		if err != nil {
			return nil, 0, err
		}
		if status != http.StatusOK && q.sql != "" {
			return nil, 0, fmt.Errorf("%s: status %d", q.path, status)
		}
		if i >= 3 {
			took = append(took, time.Since(began))
		}
	}
	return took, (s.cpu() - before) / time.Duration(n), nil
}

// sweeps is what the engine's look at every machine costs, when all is well and when
// 500 machines have an issue.
func sweeps(ctx context.Context, s *server) error {
	fmt.Println("\nthe sweep, every 10 s")
	watch := func(what string) {
		before := s.cpu()
		wait(ctx, idle)
		used := s.cpu() - before
		fmt.Printf("%-44s %6.2f %% of a core\n", what, 100*used.Seconds()/idle.Seconds())
	}
	watch("nothing wrong (1 wanted)")
	d := s.socketDoor()
	c := d.client()
	defer c.CloseIdleConnections()
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("node-%05d", i))
	}
	began := time.Now()
	status, _, err := d.call(ctx, c, http.MethodPost, api.Base+"/bulk", `{"verb":"hold","confirm":500,"names":[`+strings.Join(names, ",")+`]}`)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("hold 500 machines: status %d", status)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %6.0f ms\n", "500 machines put on hold in one request", ms(time.Since(began)))
	watch("500 issues come up")
	watch("500 issues stay")
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func middle(v []time.Duration) time.Duration { return slices.Sorted(slices.Values(v))[len(v)/2] }

func late(v []time.Duration) time.Duration { return slices.Sorted(slices.Values(v))[len(v)*99/100] }
