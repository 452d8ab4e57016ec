package bmc

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what was asked of controllers. All labels are enums.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rackstrap_power_requests_total",
			Help: "Requests to power controllers, by driver, action and what came of them: done, by-hand, refused, unreachable or cancelled.",
		}, []string{"driver", "action", "result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rackstrap_power_request_seconds",
			Help:    "Time of a request to a power controller, with its repeats and the wait for its turn.",
			Buckets: []float64{0.1, 0.5, 1, 2.5, 5, 10, 25, 50, 100},
		}),
	}
	reg.MustRegister(m.requests, m.seconds)
	return m
}

func (m *Metrics) done(driver string, action Action, result string, took time.Duration) {
	if m == nil {
		return
	}
	if !slices.Contains([]Action{ActionOn, ActionOff, ActionCycle, ActionStatus}, action) {
		action = "unknown"
	}
	if _, ok := Drivers()[driver]; !ok {
		driver = "unknown"
	}
	m.requests.WithLabelValues(driver, string(action), result).Inc()
	m.seconds.Observe(took.Seconds())
}
