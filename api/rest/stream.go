package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// heartbeat is how often a silent stream says that it lives.
	heartbeat = 15 * time.Second
	// progressEvery is the least time between two progress events of a workflow.
	progressEvery = 500 * time.Millisecond
	// writeLimit is how long a client may take to read; a slower one is cut off and
	// resumes where it was.
	writeLimit = 30 * time.Second
)

// stream sends server-sent events (the "event" stream of the HTML standard):
//
//	event: event      an Event, with its cursor as id; stored ones that are listed
//	                  first, for a client without a cursor, have none
//	event: progress   a workflow.Progress, at most two a second for each workflow; it
//	                  is not stored and has no id
//	event: compacted  the cursor is too old: list again, go on without it
//
// A comment is sent every 15 s. With follow=false the stream ends after what is
// stored.
func (s *server) stream(w http.ResponseWriter, r *http.Request, q workflow.EventQuery) error {
	resume := q.After > 0
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return badRequest("send the id of the last event as it came", "Last-Event-ID %.40q is no cursor", id)
		}
		q.After, resume = n, true
	}
	follow := r.URL.Query().Get("follow") != "false"
	after := q.After
	var stored *api.List[api.Event]
	if !resume || !follow {
		var err error
		if stored, err = s.listEvents(r.Context(), q); err != nil {
			return err
		}
		after = stored.Cursor
	}
	out := &sseWriter{w: w, control: http.NewResponseController(w), now: s.Now}
	out.start()
	if stored != nil {
		for _, e := range stored.Items {
			if err := out.event("event", "", e); err != nil {
				return nil
			}
		}
		if err := out.raw(fmt.Sprintf("id: %d\n\n", after)); err != nil {
			return nil
		}
	}
	if follow {
		s.followEvents(r.Context(), out, q, after)
	}
	return nil
}

// followEvents sends what is new until the client goes or ctx ends.
func (s *server) followEvents(ctx context.Context, out *sseWriter, q workflow.EventQuery, after uint64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := pump(ctx, s.Records.WatchEvents(ctx, after))
	beat, tick := time.NewTicker(heartbeat), time.NewTicker(progressEvery)
	defer beat.Stop()
	defer tick.Stop()
	sent := map[string]time.Time{}
	filter := q
	filter.After = 0 // the watch is after it already
	sight := s.newSight(ctx)
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			if errors.Is(e.err, workflow.ErrCompacted) {
				_ = out.event("compacted", "", struct{}{})
				return
			}
			if e.err != nil {
				if ctx.Err() == nil {
					s.Log.Error("event stream ended", "err", e.err)
				}
				return
			}
			seen := false
			if filter.Matches(&e.event) {
				seen, err = sight.event(ctx, &e.event)
			}
			if seen {
				err = out.event("event", strconv.FormatUint(e.event.Cursor, 10), api.NewEvent(e.event))
			}
		case <-tick.C:
			err = s.sendProgress(ctx, out, q, sight, sent)
		case <-beat.C:
			err = out.raw(": beat\n\n")
		}
		if err != nil {
			return
		}
	}
}

// sendProgress sends what has moved since it was sent last.
func (s *server) sendProgress(ctx context.Context, out *sseWriter, q workflow.EventQuery, sight *sight, sent map[string]time.Time) error {
	for _, p := range s.progress.latest(ctx) {
		if (q.Workflow != "" && q.Workflow != p.Workflow) || (q.Hardware != "" && q.Hardware != p.hardware) || sent[p.Workflow].Equal(p.At) {
			continue
		}
		if seen, err := sight.machine(ctx, p.machine, p.hardware); err != nil || !seen {
			continue // what was asked for in vain is asked for again at the next tick
		}
		if err := out.event("progress", "", p.Progress); err != nil {
			return err
		}
		sent[p.Workflow] = p.At
	}
	return nil
}

type watched struct {
	event workflow.Event
	err   error
}

// pump runs a blocking iterator until ctx ends and closes the channel then.
func pump(ctx context.Context, seq iter.Seq2[workflow.Event, error]) <-chan watched {
	out := make(chan watched)
	go func() {
		defer close(out)
		for e, err := range seq {
			select {
			case out <- watched{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// sseWriter writes one stream, each message flushed and within writeLimit.
type sseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
}

func (o *sseWriter) start() {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	_ = o.control.Flush() // an error shows at the first message
}

func (o *sseWriter) event(name, id string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return o.raw(id + "event: " + name + "\ndata: " + string(data) + "\n\n")
}

func (o *sseWriter) raw(text string) error {
	// a recorder in a test has no deadline; a socket has
	_ = o.control.SetWriteDeadline(o.now().Add(writeLimit))
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}
