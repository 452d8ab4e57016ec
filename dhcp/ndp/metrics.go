package ndp

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters of the answers. All labels are enums.
type Metrics struct {
	solicitations *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		solicitations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rackstrap_ndp_solicitations_total",
			Help: "IPv6 Router Solicitations received, by what became of them.",
		}, []string{"outcome"}),
	}
	reg.MustRegister(m.solicitations)
	return m
}

func (m *Metrics) count(o Outcome) { m.solicitations.WithLabelValues(string(o)).Inc() }
