package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rackstrap/rackstrap/api"
)

const (
	openPages  = 200
	pageWrites = 50
	// seldom is how often the memory is looked at while pages open.
	seldom = 50 * time.Millisecond
)

// pages is what the web UI costs the daemon: browsers that sign in, list every machine,
// follow the events and read a row again when an event names it.
func pages(ctx context.Context, keep string) error {
	fmt.Printf("\n== %d open pages of the web UI with %d machines, load %s\n", openPages, machines, load())
	dir, err := os.MkdirTemp("", "rsb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := fleetIn(ctx, keep, dir); err != nil {
		return err
	}
	s, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer s.kill()
	wait(ctx, idle) // the event log is trimmed first
	before := s.memory()
	fmt.Printf("%-44s %s\n", "resident, before", before)
	most, stopLooking := s.most(ctx)
	began, cpu := time.Now(), s.cpu()
	open := make([]*openPage, openPages)
	err = each(openPages, 16, func(i int) (err error) {
		open[i], err = s.openPage(ctx, i)
		return err
	})
	stopLooking()
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %6.0f ms, each with all rows (%.1f MB, %.2f compressed)\n", "opened, 16 at a time", ms(time.Since(began)), float64(open[0].rows)/1e6, float64(open[0].packed)/1e6)
	fmt.Printf("%-44s %6.1f ms of the daemon's processor time\n", "each", ms(s.cpu()-cpu)/openPages)
	fmt.Printf("%-44s %6.1f MiB more than before\n", "at most, while they opened", most()-before.anon)
	wait(ctx, 2*settle)
	fmt.Printf("%-44s %6.1f MiB more than before, 200 MB wanted\n", "open, silent", s.memory().anon-before.anon)
	if err := told(ctx, s, open); err != nil {
		return err
	}
	fmt.Printf("%-44s %6.1f MiB more than before\n", "after that", s.memory().anon-before.anon)
	return s.stop()
}

// most samples the daemon's own memory until it is told to stop.
func (s *server) most(ctx context.Context) (most func() float64, stop func()) {
	var mu sync.Mutex
	top := 0.0
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			now := s.memory().anon
			mu.Lock()
			top = max(top, now)
			mu.Unlock()
			wait(ctx, seldom)
		}
	}()
	return func() float64 { mu.Lock(); defer mu.Unlock(); return top }, func() { cancel(); <-done }
}

// openPage is one browser.
type openPage struct {
	rows, packed int
	heard        chan string // machines that events named
	row          func(name string) error
}

// openPage signs in with a token of its own: one token has 32 sessions at most.
func (s *server) openPage(ctx context.Context, i int) (*openPage, error) {
	local := s.socketDoor()
	lc := local.client()
	defer lc.CloseIdleConnections()
	var made api.CreatedToken
	if err := ask(ctx, lc, "POST", "/tokens", "", fmt.Sprintf(`{"metadata":{"name":"page-%d"},"spec":{"role":"viewer"}}`, i), func(r *http.Response) error {
		return json.NewDecoder(r.Body).Decode(&made)
	}); err != nil {
		return nil, err
	}
	d := s.httpsDoor("")
	c := &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx, 2*i) },
		DisableCompression: true, MaxIdleConnsPerHost: 2,
	}}
	p, cookie := &openPage{heard: make(chan string, 10_000)}, ""
	err := ask(ctx, c, "POST", "/session", "", `{"token":"`+made.Secret+`"}`, func(r *http.Response) error {
		for _, k := range r.Cookies() {
			cookie = k.Name + "=" + k.Value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := ask(ctx, c, "GET", "/overview", cookie, "", func(*http.Response) error { return nil }); err != nil {
		return nil, err
	}
	cursor := uint64(0)
	if err := ask(ctx, c, "GET", "/summaries", cookie, "", func(r *http.Response) error {
		raw := &counted{Reader: r.Body}
		z, err := gzip.NewReader(raw)
		if err != nil {
			return err
		}
		tail := &counted{Reader: z}
		var list struct {
			Cursor uint64 `json:"cursor"`
		}
		err = json.NewDecoder(tail).Decode(&list)
		p.rows, p.packed, cursor = tail.n, raw.n, list.Cursor
		return err
	}); err != nil {
		return nil, err
	}
	p.row = func(name string) error {
		return ask(ctx, c, "GET", "/summaries?name="+name, cookie, "", func(*http.Response) error { return nil })
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://appliance%s/events?after=%d", api.Base, cursor), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cookie", cookie)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	go func() {
		defer resp.Body.Close()
		defer close(p.heard)
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			var e api.Event
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil && e.Machine != "" {
				p.heard <- e.Machine
			}
		}
	}()
	return p, nil
}

// told changes one machine after the other, and measures until every page has heard of
// it, and until every page has its row.
func told(ctx context.Context, s *server, open []*openPage) error {
	w := s.socketDoor()
	c := w.client()
	defer c.CloseIdleConnections()
	var heard, shown []time.Duration
	cpu := s.cpu()
	for i := range pageWrites {
		name := fmt.Sprintf("node-%05d", 100+i)
		began := time.Now()
		if err := ask(ctx, c, "POST", "/hardware/"+name+"/hold", "", `{"hold":true}`, func(*http.Response) error { return nil }); err != nil {
			return err
		}
		var last atomic.Int64
		err := each(len(open), len(open), func(i int) error {
			for end := time.After(10 * time.Second); ; {
				select {
				case m, ok := <-open[i].heard:
					if !ok {
						return fmt.Errorf("the stream of page %d ended", i)
					}
					if m != name {
						continue
					}
				case <-end:
					return fmt.Errorf("page %d did not hear of %s", i, name)
				}
				for at := int64(time.Since(began)); ; {
					if was := last.Load(); at <= was || last.CompareAndSwap(was, at) {
						break
					}
				}
				return open[i].row(name)
			}
		})
		if err != nil {
			return err
		}
		heard, shown = append(heard, time.Duration(last.Load())), append(shown, time.Since(began))
	}
	fmt.Printf("%-44s %6.1f ms, p99 %.1f; 500 wanted\n", "from the request until the last page heard", ms(middle(heard)), ms(late(heard)))
	fmt.Printf("%-44s %6.1f ms, p99 %.1f\n", "and until the last page had the row", ms(middle(shown)), ms(late(shown)))
	fmt.Printf("%-44s %6.1f ms of processor time\n", "each change, for all pages", ms(s.cpu()-cpu)/pageWrites)
	return nil
}

// ask sends one request as a page does, and wants a success.
func ask(ctx context.Context, c *http.Client, method, path, cookie, body string, read func(*http.Response) error) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://appliance"+api.Base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept-Encoding", "gzip")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s %s: %s %.200s", method, path, resp.Status, text)
	}
	err = read(resp)
	_, drained := io.Copy(io.Discard, resp.Body)
	return errors.Join(err, drained)
}

// counted counts what is read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}
