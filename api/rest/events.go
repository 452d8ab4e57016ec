package rest

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// How many events a list has, where the request does not say, and at most.
const (
	defaultEvents = 1000
	maxEvents     = 10_000
)

// events answers with a list, or with a stream where the client accepts one.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := queryKnown(q, "hardware", "workflow", "boot", "by", "reason", "after", "before", "limit", "follow"); err != nil {
		return err
	}
	query, err := s.eventQuery(r.Context(), q)
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		if q.Has("before") {
			return badRequest("leave it out, or ask for a list", "before works for lists only: a stream goes forward")
		}
		return s.stream(w, r, query)
	}
	if q.Has("follow") {
		return badRequest("send `Accept: text/event-stream`", "follow works for streams only")
	}
	list, err := s.listEvents(r.Context(), query)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, list)
}

// eventQuery reads the filters of the URL.
func (s *server) eventQuery(ctx context.Context, q url.Values) (workflow.EventQuery, error) {
	out := workflow.EventQuery{Workflow: q.Get("workflow"), Boot: q.Get("boot"), By: q.Get("by"), Reason: hardware.Reason(q.Get("reason"))}
	if out.Reason != "" && !out.Reason.Known() {
		return out, badRequest("the reasons are the headings of deploy/docs/troubleshooting.md", "reason=%.60q is not known", out.Reason)
	}
	if out.Before = q.Get("before"); out.Before != "" && !isEventID(out.Before) {
		return out, badRequest("give the id of an event that you have", "before=%.40q is no id of an event", out.Before)
	}
	if name := q.Get("hardware"); name != "" {
		h, err := s.hardware.find(ctx, name)
		if err != nil {
			return out, err
		}
		out.Hardware = h.Meta.UID
	}
	var err error
	if out.After, err = number(q, "after", 0, 0); err != nil {
		return out, err
	}
	limit, err := number(q, "limit", defaultEvents, maxEvents)
	out.Limit = int(limit)
	return out, err
}

// isEventID reports whether s can be the id of an event, which is a ULID.
func isEventID(s string) bool {
	return len(s) == 26 && strings.Trim(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

// listEvents is what is stored, with a cursor that is not newer than the list: a
// subscriber who goes on from it may see an event twice, and misses none.
func (s *server) listEvents(ctx context.Context, q workflow.EventQuery) (*api.List[api.Event], error) {
	cursor, err := s.Records.Cursor(ctx)
	if err != nil {
		return nil, err
	}
	events, err := s.Records.Events(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &api.List[api.Event]{APIVersion: api.Version, Kind: "EventList", Items: make([]api.Event, 0, len(events)), Cursor: cursor}
	sight := s.newSight(ctx)
	for _, e := range events {
		seen, err := sight.event(ctx, &e)
		if err != nil {
			return nil, err
		}
		if seen {
			out.Items = append(out.Items, api.NewEvent(e))
		}
	}
	return out, nil
}
