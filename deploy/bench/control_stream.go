package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rackstrap/rackstrap/api"
)

const (
	listeners = 1000
	writes    = 50
)

// subscribers opens many event streams, writes, and measures until the last one has
// heard of it; then they leave.
func subscribers(ctx context.Context, dir string, f fleet) error {
	fmt.Printf("\n%d event streams, one writer\n", listeners)
	for _, of := range []func(*server) door{(*server).socketDoor, func(s *server) door { return s.httpsDoor(f.viewer) }} {
		s, err := startServer(ctx, dir) // a fresh one: what another left behind is not counted
		if err != nil {
			return err
		}
		wait(ctx, 3*settle)
		err = errors.Join(subscribed(ctx, s, of(s)), s.stop())
		s.kill()
		if err != nil {
			return err
		}
	}
	return nil
}

func subscribed(ctx context.Context, s *server, d door) error {
	before, gBefore := s.memory(), s.gauge("go_goroutines")
	conns := make([]net.Conn, listeners)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	var heard atomic.Int64 // events, of all
	opened := time.Now()
	err := each(listeners, 32, func(i int) error {
		c, err := d.dial(ctx, i)
		if err != nil {
			return err
		}
		conns[i] = c
		_, err = fmt.Fprintf(c, "GET %s/events?limit=1 HTTP/1.1\r\nHost: appliance\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", api.Base, d.token)
		if err != nil {
			return err
		}
		r := bufio.NewReader(c)
		if err := until(r, "id: "); err != nil { // the cursor: what is stored was sent
			return fmt.Errorf("stream %d: %w", i, err)
		}
		go func() {
			for until(r, "event: event") == nil {
				heard.Add(1)
			}
		}()
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s: opened in %.0f ms\n", d.name, ms(time.Since(opened)))
	wait(ctx, settle)
	with, gWith := s.memory(), s.gauge("go_goroutines")
	fmt.Printf("  %-42s %6.1f KiB, %.1f goroutines\n", "each costs", (with.anon-before.anon)*1024/listeners, (gWith-gBefore)/listeners)
	cpu := s.cpu()
	wait(ctx, 2*settle)
	fmt.Printf("  %-42s %6.2f %% of a core\n", "all of them, silent", 100*(s.cpu()-cpu).Seconds()/(2*settle).Seconds())
	if err := toldAll(ctx, s, &heard); err != nil {
		return err
	}
	fmt.Printf("  %-42s %s\n", "resident while they were told", s.memory())
	for _, c := range conns {
		_ = c.Close()
	}
	wait(ctx, 2*settle)
	left := s.memory()
	fmt.Printf("  %-42s %s, %.0f goroutines (%.0f before)\n", "after they left", left, s.gauge("go_goroutines"), gBefore)
	return nil
}

// toldAll writes one change after the other, each when all have heard of the last.
func toldAll(ctx context.Context, s *server, heard *atomic.Int64) error {
	w := s.socketDoor()
	c := w.client()
	defer c.CloseIdleConnections()
	var all, alone []time.Duration
	cpu := s.cpu()
	per := int64(0) // events of one change
	for i := range writes + 1 {
		from := heard.Load()
		began := time.Now()
		status, _, err := w.call(ctx, c, http.MethodPost, api.Base+"/hardware/node-00007/hold", fmt.Sprintf(`{"hold":%t}`, i%2 == 0))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("hold: status %d", status)
		}
		if err != nil {
			return err
		}
		alone = append(alone, time.Since(began))
		if i == 0 { // how many events is it?
			wait(ctx, settle)
			per = heard.Load() - from
			if per < listeners || per%listeners != 0 {
				return errors.New("not every stream heard of the change")
			}
			cpu, alone = s.cpu(), alone[:0]
			continue
		}
		for heard.Load() < from+per {
			if time.Since(began) > 10*time.Second {
				return fmt.Errorf("%d of %d events came within 10 s", heard.Load()-from, per)
			}
			wait(ctx, 200*time.Microsecond)
		}
		all = append(all, time.Since(began))
	}
	events := float64(writes) * float64(per)
	fmt.Printf("  %-42s %6.1f ms, p99 %.1f (the writer's own answer: %.1f, p99 %.1f); %d events each\n", "from the request until the last heard", ms(middle(all)), ms(late(all)), ms(middle(alone)), ms(late(alone)), per/listeners)
	fmt.Printf("  %-42s %6.1f µs\n", "processor time of one event to one stream", 1000*ms(s.cpu()-cpu)/events)
	return nil
}

// until reads lines until one begins with the word.
func until(r *bufio.Reader, word string) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, word) {
			return nil
		}
	}
}
