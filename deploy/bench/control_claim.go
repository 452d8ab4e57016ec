package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	claimRate    = 100 // a second
	claimSeconds = 10
	claimers     = 32 // of the burst
	claimBurst   = 500
)

// claims claims at a steady rate and as fast as it goes, over both doors, and counts
// machines that were given twice.
func claims(ctx context.Context, s *server, f fleet) error {
	fmt.Printf("\n%-44s %8s %8s %8s %8s %8s\n", "POST /claims", "claims/s", "ms", "p99", "CPU ms", "doubles")
	given := &givenOut{by: map[string]string{}}
	for _, d := range []door{s.socketDoor(), s.httpsDoor(f.claimer)} {
		c := d.client()
		c.Transport.(*http.Transport).MaxIdleConnsPerHost = claimers
		tick := time.NewTicker(time.Second / claimRate)
		steady := func(i int) error { <-tick.C; return nil }
		if err := claimAll(ctx, s, d, c, given, fmt.Sprintf("%d/s over %s", claimRate, d.name), claimRate*claimSeconds, steady); err != nil {
			return err
		}
		tick.Stop()
		none := func(int) error { return nil }
		if err := claimAll(ctx, s, d, c, given, fmt.Sprintf("%d at once over %s", claimers, d.name), claimBurst, none); err != nil {
			return err
		}
		c.CloseIdleConnections()
	}
	return nil
}

// givenOut is which claim has which machine.
type givenOut struct {
	mu      sync.Mutex
	by      map[string]string // claim by uid
	doubles int
}

func (g *givenOut) take(uid, claim string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by[uid] != "" {
		g.doubles++
	}
	g.by[uid] = claim
}

func claimAll(ctx context.Context, s *server, d door, c *http.Client, given *givenOut, what string, n int, pace func(int) error) error {
	took := make([]time.Duration, n)
	began, cpu := time.Now(), s.cpu()
	err := each(n, claimers, func(i int) error {
		if err := pace(i); err != nil {
			return err
		}
		id := fmt.Sprintf("%s-%d-%d", strings.ToLower(d.name), began.UnixNano(), i)
		asked := time.Now()
		got, err := claim(ctx, d, c, id)
		if err != nil {
			return err
		}
		took[i] = time.Since(asked)
		given.take(got.Status.UID, id)
		return nil
	})
	if err != nil {
		return err
	}
	rate := float64(n) / time.Since(began).Seconds()
	fmt.Printf("%-44s %8.0f %8.2f %8.2f %8.2f %8d\n", what, rate, ms(middle(took)), ms(late(took)), ms(s.cpu()-cpu)/float64(n), given.doubles)
	return nil
}

func claim(ctx context.Context, d door, c *http.Client, id string) (got hardware.Claim, err error) {
	body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"owner":"bench/%s","selector":"site=ams1,tier in (prod,stage)","requirements":{"arch":"amd64","cpus":32,"memory":"64Gi","disks":[{"count":2,"size":"1Ti","transport":"nvme"}]}}}`, id, id)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://appliance"+api.Base+"/claims", strings.NewReader(body))
	if err != nil {
		return got, err
	}
	r.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	w, err := c.Do(r)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, w.Body.Close()) }()
	raw, err := io.ReadAll(bufio.NewReader(w.Body))
	if err == nil && w.StatusCode != http.StatusCreated {
		err = fmt.Errorf("claim %s: status %d: %s", id, w.StatusCode, raw)
	}
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(raw, &got)
}
