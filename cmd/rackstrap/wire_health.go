package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func newRegistry() *prometheus.Registry {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// healthHandler answers on loopback: /healthz is whether the process lives,
// /readyz whether every part of it serves; what is wrong around it comes in lines below.
func healthHandler(reg *prometheus.Registry, ready func() error, warnings func() []string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
		for _, text := range warnings() {
			_, _ = fmt.Fprintf(w, "warning: %s\n", text)
		}
	})
	return mux
}

// serveHTTP answers on l until ctx ends, then lets requests finish for a while.
func serveHTTP(ctx context.Context, l net.Listener, srv *http.Server) error {
	errc := make(chan error, 1)
	go func() {
		if srv.TLSConfig != nil {
			errc <- srv.ServeTLS(l, "", "")
			return
		}
		errc <- srv.Serve(l)
	}()
	select {
	case err := <-errc:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace/2)
	defer cancel()
	if err := srv.Shutdown(stop); errors.Is(err, context.DeadlineExceeded) {
		// downloads and event streams do not end by themselves
		return srv.Close()
	}
	return nil
}

// notifySystemd tells the service manager that we are ready (sd_notify(3)).
func notifySystemd(state string) {
	sock := os.Getenv("NOTIFY_SOCKET")
	if sock == "" {
		return
	}
	if c, err := net.DialTimeout("unixgram", sock, time.Second); err == nil {
		_, _ = c.Write([]byte(state))
		_ = c.Close()
	}
}
