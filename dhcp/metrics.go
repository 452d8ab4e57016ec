package dhcp

import (
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
)

// Metrics are the counters of the DHCP server. All labels are enums, or names that
// operators chose.
type Metrics struct {
	packets   *prometheus.CounterVec
	replies   *prometheus.CounterVec
	sendFails prometheus.Counter
	dropped   prometheus.Counter
	handling  prometheus.Histogram
	strangers prometheus.Gauge
	conflicts prometheus.Counter
	rivals    *prometheus.GaugeVec
	pools     *poolStats
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		packets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rackstrap_dhcp_packets_total",
			Help: "DHCP packets received, by message type and by the reason of their answer.",
		}, []string{"type", "reason"}),
		replies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rackstrap_dhcp_replies_total",
			Help: "DHCP replies sent, by message type.",
		}, []string{"type"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rackstrap_dhcp_dropped_total",
			Help: "DHCP packets dropped because too many with their MAC's queue waited.",
		}),
		sendFails: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rackstrap_dhcp_send_failures_total",
			Help: "DHCP replies that the kernel did not take.",
		}),
		handling: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rackstrap_dhcp_handling_seconds",
			Help:    "Time from reading a packet of a known machine to its reply, with the write of its lease.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
		strangers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rackstrap_dhcp_strangers",
			Help: "MAC addresses without a Hardware record that are remembered.",
		}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rackstrap_dhcp_address_conflicts_total",
			Help: "Addresses of pools that somebody was found to use before they were lent.",
		}),
		rivals: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rackstrap_dhcp_other_servers",
			Help: "Other DHCP servers that answer, by interface of ours.",
		}, []string{"interface"}),
		pools: newPoolStats(),
	}
	reg.MustRegister(m.packets, m.replies, m.dropped, m.sendFails, m.handling, m.strangers, m.conflicts, m.rivals, m.pools)
	return m
}

func (m *Metrics) received(t dhcpv4.MessageType, r hardware.Reason) {
	m.packets.WithLabelValues(typeLabel(t), string(r)).Inc()
}

func (m *Metrics) sent(t dhcpv4.MessageType, err error, took time.Duration) {
	if err != nil {
		m.sendFails.Inc()
		return
	}
	m.replies.WithLabelValues(typeLabel(t)).Inc()
	m.handling.Observe(took.Seconds())
}

// typeLabel keeps what strangers send out of the label set.
func typeLabel(t dhcpv4.MessageType) string {
	if t >= dhcpv4.MessageTypeDiscover && t <= dhcpv4.MessageTypeInform {
		return t.String()
	}
	return "OTHER"
}
