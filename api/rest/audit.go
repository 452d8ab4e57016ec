package rest

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// auditPatience bounds the wait for the disk.
	auditPatience = 5 * time.Second
	maxAuditPath  = 200
)

// told is what a handler tells of its request beside the answer. It is used by the
// request's goroutine.
type told struct {
	dry bool // what was written was thrown away
	// part is what had been done when the request failed.
	part string
}

type toldKey struct{}

func withTold(ctx context.Context) context.Context {
	return context.WithValue(ctx, toldKey{}, &told{})
}

// toldOf is of the request of ctx; of no request, it is told to nobody.
func toldOf(ctx context.Context) *told {
	if t, ok := ctx.Value(toldKey{}).(*told); ok {
		return t
	}
	return &told{}
}

// changed tells the log and the event log that somebody asked for a change and how
// that ended. It has the path and never the body. The events of what was changed
// name the caller too, and are in the transaction of the change; this one comes
// after it, before the answer.
func (s *server) changed(r *http.Request, result string) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || toldOf(r.Context()).dry {
		return
	}
	path, by := hardware.PlainText(r.URL.Path, maxAuditPath), CallerFrom(r.Context()).Name
	s.Log.Info("api change", "method", r.Method, "path", path, "by", by)
	if s.Audit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditPatience)
	defer cancel()
	err := s.Audit(ctx, workflow.Event{Reason: hardware.ReasonAPIChange, By: by, Detail: r.Method + " " + path + ": " + result})
	if err != nil {
		s.Log.Error("the event of a change was not written", "method", r.Method, "path", path, "by", by, "err", err)
	}
}

// refused tells that a caller may not do what it asked for.
func (s *server) refused(r *http.Request, by string, p *api.Problem) {
	path := hardware.PlainText(r.URL.Path, maxAuditPath)
	s.Log.Warn("api request refused", "reason", hardware.ReasonAPIRefused, "method", r.Method, "path", path, "by", by, "code", p.Code)
	if s.Note != nil {
		s.Note(workflow.Event{Reason: hardware.ReasonAPIRefused, By: by, Detail: r.Method + " " + path + ": " + string(p.Code)})
	}
}

// refusedFrom tells that somebody came without a good token. The path is not in it:
// a stranger's words are none of our log's.
func (s *server) refusedFrom(from netip.Addr, by string, p *api.Problem) {
	s.Log.Warn("api request refused", "reason", hardware.ReasonAPIRefused, "from", from, "by", by, "code", p.Code)
	if s.Note != nil {
		s.Note(workflow.Event{Reason: hardware.ReasonAPIRefused, By: by, Detail: string(p.Code) + " from " + from.String()})
	}
}
