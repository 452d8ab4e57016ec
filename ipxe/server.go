package ipxe

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// DefaultPort is the port of the HTTP listener.
const DefaultPort = 7080

const (
	maxHeader     = 8 << 10 // firmware sends some hundred bytes
	shutdownGrace = 5 * time.Second
)

// Server serves a handler to machines that we do not trust: short waits for their
// requests, small headers. Downloads take as long as they take; see
// NewHandler for those that stall.
type Server struct {
	handler http.Handler
	log     *slog.Logger
}

// NewServer makes a server for what NewHandler returns.
func NewServer(handler http.Handler, log *slog.Logger) *Server {
	return &Server{handler: handler, log: log}
}

// Serve answers on l until ctx ends, then gives running downloads five seconds and
// returns nil. It returns the error of the listener otherwise. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ConnContext:       withConn,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		// Broken connections of machines that lose power are normal.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		// Ended by force; machines ask again.
		_ = srv.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
