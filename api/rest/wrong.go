package rest

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on wrong tokens: so many at once from one network, then one each
// wrongEvery. What is good is never held up.
const (
	wrongBurst = 10
	wrongEvery = time.Second
)

// wrongTokens counts wrong tokens by address, in bounded memory.
type wrongTokens struct{ *pace[netip.Addr] }

func newWrongTokens(now func() time.Time) *wrongTokens {
	return &wrongTokens{newPace[netip.Addr](now, wrongBurst, wrongEvery)}
}

// allow takes note of one wrong token and reports whether it gets a whole answer.
func (w *wrongTokens) allow(a netip.Addr) bool {
	if a.Is6() { // whoever has one address there has 2^64
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	return w.take(a)
}

// maxPaced is how many are told apart by a pace; the others share one place.
const maxPaced = 4096

// pace bounds how often each of many does something, in bounded memory: burst at once,
// then one each every.
type pace[K comparable] struct {
	now   func() time.Time
	burst int
	every time.Duration
	mu    sync.Mutex
	// full is when one may again do it burst times at once.
	full map[K]time.Time
}

func newPace[K comparable](now func() time.Time, burst int, every time.Duration) *pace[K] {
	return &pace[K]{now: now, burst: burst, every: every, full: map[K]time.Time{}}
}

// take takes note of one more, if that is not too many.
func (p *pace[K]) take(k K) bool {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.full[k]; !known && len(p.full) >= maxPaced {
		for o, t := range p.full {
			if !now.Before(t) {
				delete(p.full, o)
			}
		}
		if len(p.full) >= maxPaced {
			k = *new(K)
		}
	}
	full := p.full[k]
	if full.Before(now) {
		full = now
	}
	if full.Sub(now) > time.Duration(p.burst-1)*p.every {
		return false
	}
	p.full[k] = full.Add(p.every)
	return true
}
