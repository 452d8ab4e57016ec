package dhcp

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
)

// PoolUse is how many addresses of a Pool are in which state. They add up to Size but
// for those that are reserved for a machine, or ours.
type PoolUse struct {
	Size, Used, Offered, Quarantined, Free int
}

// use counts, looking at every slot.
func (p *pool) use(now time.Time) PoolUse {
	u := PoolUse{Size: p.size}
	for i, s := range p.slots {
		_, barred := p.barred[i]
		switch {
		case s.active(now) && s.declined:
			u.Quarantined++
		case s.active(now):
			u.Used++
		case s.until.After(now):
			u.Offered++
		case barred:
		default:
			continue
		}
		u.Free--
	}
	for i := range p.barred {
		if p.slots[i] == nil {
			u.Free--
		}
	}
	u.Free += p.size
	return u
}

// Use counts the addresses of a Subnet's Pool; all are zero where it has none.
func (s *Server) Use(n *hardware.Subnet) PoolUse {
	if n.Spec.Mode != hardware.ModePool || n.Spec.Pool == nil {
		return PoolUse{}
	}
	now := s.Now()
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	return s.pool(n, now).use(now)
}

// poolStats asks the Server when it is asked.
type poolStats struct {
	server atomic.Pointer[Server]
	desc   *prometheus.Desc
}

func newPoolStats() *poolStats {
	return &poolStats{desc: prometheus.NewDesc("rackstrap_dhcp_pool_addresses",
		"Addresses of a Subnet's pool: size of the pool, used, offered, quarantined and free.", []string{"subnet", "state"}, nil)}
}

func (p *poolStats) follow(s *Server) { p.server.Store(s) }

// Describe implements prometheus.Collector.
func (p *poolStats) Describe(out chan<- *prometheus.Desc) { out <- p.desc }

// Collect implements prometheus.Collector.
func (p *poolStats) Collect(out chan<- prometheus.Metric) {
	s := p.server.Load()
	if s == nil {
		return
	}
	for _, n := range s.View.Subnets() {
		if n.Spec.Mode != hardware.ModePool || n.Spec.Pool == nil {
			continue
		}
		u := s.Use(n)
		for state, v := range map[string]int{"size": u.Size, "used": u.Used, "offered": u.Offered, "quarantined": u.Quarantined, "free": u.Free} {
			out <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(v), n.Meta.Name, state)
		}
	}
}
