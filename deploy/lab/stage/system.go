package stage

import (
	"context"
	"net/http"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// startTime is how long a simulated system takes to start.
const startTime = 2 * time.Second

// phoneHome is a system that says that it is up, as cloud-init does, and is then idle.
func phoneHome(ctx context.Context, m *sim.Machine, s *sim.System) {
	url := s.Meta("phone-home-url")
	for wait := startTime; url != "" && ctx.Err() == nil; wait = 5 * time.Second {
		if sleep(ctx, wait); ctx.Err() != nil {
			return
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
		if err != nil {
			return
		}
		if resp, err := m.HTTPClient().Do(req); err == nil {
			_ = resp.Body.Close()
			return
		}
	}
}

// sleep returns early when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
