package rest

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api"
)

// doctorTime bounds one look: other DHCP servers are listened for some seconds, and what
// does not answer has a patience of its own.
const doctorTime = 45 * time.Second

func doctorRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/doctor", Does: "Look at everything that netbooting needs, from the appliance itself; takes about six seconds", Role: RoleOperator,
		Out: api.List[api.DoctorCheck]{}, handle: (*server).doctor,
	}}
}

// rounds lets one look at a time go on, and all who ask meanwhile share it.
type rounds struct {
	mu  sync.Mutex
	now *round // nil: nobody looks
}

type round struct {
	done   chan struct{}
	checks []api.DoctorCheck
	err    error
}

// join begins a look, or joins the one that goes on. It is nobody's request: whoever
// leaves does not end it for the others.
func (r *rounds) join(ctx context.Context, log *slog.Logger, look func(context.Context) ([]api.DoctorCheck, error)) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		return r.now
	}
	mine := &round{done: make(chan struct{})}
	r.now = mine
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), doctorTime)
	go func() {
		defer cancel()
		err := survive(func() error {
			mine.checks, mine.err = look(ctx)
			return nil
		})
		if err != nil {
			log.Error("the doctor failed", "err", err)
			mine.checks = []api.DoctorCheck{{Name: "doctor", Result: api.CheckFail, Detail: "looking around failed: the daemon's log says where", Fix: "journalctl -u rackstrap -n 50, and report it"}}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now = nil
		close(mine.done)
	}()
	return mine
}

func (s *server) doctor(w http.ResponseWriter, r *http.Request) error {
	if s.Doctor == nil {
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: "this daemon does not look at itself", Hint: "on the appliance: sudo rackstrap doctor"}
	}
	mine := s.rounds.join(r.Context(), s.Log, s.Doctor)
	select {
	case <-mine.done:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if mine.err != nil {
		return mine.err
	}
	return writeJSON(w, http.StatusOK, api.List[api.DoctorCheck]{APIVersion: api.Version, Kind: "DoctorCheckList", Items: mine.checks})
}
