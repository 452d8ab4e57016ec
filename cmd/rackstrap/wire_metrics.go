package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/workflow"
)

// meters are the counters of what the parts do with each other; DHCP has its own.
// All labels are enums of ours.
type meters struct {
	tftp, tftpBytes        *prometheus.CounterVec
	http, httpBytes        *prometheus.CounterVec
	files                  *prometheus.CounterVec
	attempts, attemptBytes *prometheus.CounterVec
	writeErrors            *prometheus.CounterVec
	api                    *prometheus.CounterVec
}

func newMeters(reg prometheus.Registerer) *meters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rackstrap_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	return &meters{
		tftp:         counter("tftp_transfers_total", "TFTP requests that ended, by how.", "result"),
		tftpBytes:    counter("tftp_bytes_total", "Bytes read for TFTP transfers, by how they ended.", "result"),
		http:         counter("http_boot_responses_total", "Boot programs, scripts, kernels and initramfs answered over HTTP, by the reason that the timeline has.", "reason"),
		httpBytes:    counter("http_boot_bytes_total", "Bytes of those answers, by reason.", "reason"),
		files:        counter("http_files_total", "Images, seeds and phone calls over HTTP; a download in ranges counts each.", "what", "result"),
		attempts:     counter("attempts_ended_total", "Attempts of actions that ended, by kind and outcome.", "kind", "outcome"),
		attemptBytes: counter("attempt_bytes_total", "Bytes that ended attempts took from the network (source) and put on disks (written).", "kind", "which"),
		writeErrors:  counter("store_write_errors_total", "Writes that the disk did not take.", "what", "error"),
		api:          counter("api_requests_total", "Requests of the API that reached a route, refused ones too; a stream of events counts once.", "method", "route"),
	}
}

// request counts one of the API.
func (m *meters) request(r rest.Route) { m.api.WithLabelValues(r.Method, r.Path).Inc() }

// watch registers what others count.
func (m *meters) watch(reg prometheus.Registerer, stats func() workflow.Stats, dropped func() uint64) {
	reg.MustRegister(
		newEngineStats(stats),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rackstrap_events_dropped_total", Help: "Timeline events that were not written: they came too fast, or the disk refused for long.",
		}, func() float64 { return float64(dropped()) }),
	)
}

// engineStats asks the engine when it is asked.
type engineStats struct {
	stats           func() workflow.Stats
	workers, active *prometheus.Desc
}

func newEngineStats(stats func() workflow.Stats) engineStats {
	return engineStats{
		stats:   stats,
		workers: prometheus.NewDesc("rackstrap_workers", "Workers that are connected.", nil, nil),
		active:  prometheus.NewDesc("rackstrap_workflows_active", "Workflows that have not ended.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (e engineStats) Describe(out chan<- *prometheus.Desc) {
	out <- e.workers
	out <- e.active
}

// Collect implements prometheus.Collector.
func (e engineStats) Collect(out chan<- prometheus.Metric) {
	s := e.stats()
	out <- prometheus.MustNewConstMetric(e.workers, prometheus.GaugeValue, float64(s.Workers))
	out <- prometheus.MustNewConstMetric(e.active, prometheus.GaugeValue, float64(s.Active))
}
