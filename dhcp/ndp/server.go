package ndp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Config is what a Server needs. Interfaces, Booting and Metrics are required.
type Config struct {
	Interfaces []string
	Booting    Booting
	Metrics    *Metrics
	Log        *slog.Logger     // discarded where nil
	Now        func() time.Time // time.Now where nil
	// In runs what opens sockets and reads interfaces; nil: as is. Tests use it to
	// enter a network namespace.
	In func(func() error) error
}

// Server answers Router Solicitations on some interfaces.
type Server struct {
	Config
	ready chan struct{}
	ports []*port
}

// New checks the configuration; nothing is opened before Run.
func New(c Config) (*Server, error) {
	switch {
	case len(c.Interfaces) == 0:
		return nil, errors.New("ndp: no interface is named (list those of the provisioning network)")
	case c.Booting == nil || c.Metrics == nil:
		return nil, errors.New("ndp: Booting and Metrics are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.In == nil {
		c.In = func(f func() error) error { return f() }
	}
	s := &Server{Config: c, ready: make(chan struct{})}
	seen := map[string]bool{}
	for _, name := range c.Interfaces {
		if seen[name] {
			return nil, fmt.Errorf("ndp: interface %s is listed twice", name)
		}
		seen[name] = true
		s.ports = append(s.ports, &port{s: s, name: name})
	}
	return s, nil
}

// Ready is closed when every interface is being listened on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run answers until ctx ends, and returns nil then. It fails at once where an
// interface does not exist or the process may not open packet sockets. An
// interface that goes away later is waited for. Run must be called once.
func (s *Server) Run(ctx context.Context) error {
	for _, p := range s.ports {
		defer p.close()
		if err := p.open(); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for _, p := range s.ports {
		wg.Go(func() { p.run(ctx) })
	}
	close(s.ready)
	wg.Wait()
	return nil
}
