package rest

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on wrong tokens: so many at once from one network, then one each
// wrongEvery. What is good is never held up.
const (
	wrongBurst    = 10
	wrongEvery    = time.Second
	maxWrongAddrs = 4096
)

// wrongTokens counts wrong tokens by address, in bounded memory.
type wrongTokens struct {
	now func() time.Time
	mu  sync.Mutex
	// full is when an address may again send wrongBurst at once.
	full map[netip.Addr]time.Time
}

func newWrongTokens(now func() time.Time) *wrongTokens {
	return &wrongTokens{now: now, full: map[netip.Addr]time.Time{}}
}

// allow takes note of one wrong token and reports whether it gets a whole answer.
func (w *wrongTokens) allow(a netip.Addr) bool {
	if a.Is6() { // whoever has one address there has 2^64
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.full[a]; !known && len(w.full) >= maxWrongAddrs {
		for o, t := range w.full {
			if !now.Before(t) {
				delete(w.full, o)
			}
		}
		if len(w.full) >= maxWrongAddrs {
			a = netip.Addr{} // they share one place
		}
	}
	full := w.full[a]
	if full.Before(now) {
		full = now
	}
	if full.Sub(now) > (wrongBurst-1)*wrongEvery {
		return false
	}
	w.full[a] = full.Add(wrongEvery)
	return true
}
