package rest

import (
	"bytes"
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
	// maxWrite is about how much is given to a client at a time, within writeLimit.
	maxWrite = 64 << 10
)

// stream sends server-sent events (the "event" stream of the HTML standard):
//
//	event: event      an Event, with its cursor as id; stored ones that are listed
//	                  first, for a client without a cursor, have none
//	event: progress   a workflow.Progress, at most two a second for each workflow; it
//	                  is not stored and has no id
//	event: compacted  the cursor is too old: list again, go on without it
//
// Whatever changes a record or a machine's state is an event with the machine's uid
// and name, so a client that shows machines reads those again that an event names.
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
		f := follower{s: s, out: out, q: q, sight: s.newSight(r.Context()), after: after}
		if err := f.run(r.Context()); err != nil && r.Context().Err() == nil {
			s.Log.Debug("event stream ended", "err", err)
		}
	}
	return nil
}

// follower is one stream that goes on.
type follower struct {
	s     *server
	out   *sseWriter
	q     workflow.EventQuery
	sight *sight
	after uint64 // what is up to this revision was sent
}

// run sends what is new until the client goes, falls behind, or ctx ends. A client
// whose cursor is older than the feed first reads on from the store.
func (f *follower) run(ctx context.Context) error {
	now, err := f.s.Records.Cursor(ctx)
	if err != nil {
		return err
	}
	if f.after > now { // a cursor from another life of the store
		return f.out.event("compacted", "", struct{}{})
	}
	f.q.After = 0 // what is older does not come here
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	l, ok, err := f.s.feed.listen(ctx, f.after)
	if err != nil {
		return err
	}
	defer func() { l.leave() }()
	if !ok {
		if l, err = f.catchUp(ctx, l, beat.C); err != nil {
			return err
		}
	}
	for {
		n, err := l.news()
		if err != nil {
			return err
		}
		if err := f.send(ctx, n); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.more:
		case <-beat.C:
			if err := f.out.raw(": beat\n\n"); err != nil {
				return err
			}
		}
	}
}

// catchUp reads from the store until the feed has what comes next. It returns the
// place there, in l's stead.
func (f *follower) catchUp(ctx context.Context, l *listener, beat <-chan time.Time) (*listener, error) {
	ctx, cancel := context.WithCancel(ctx)
	batches := pump(ctx, f.s.Records.WatchEventBatches(ctx, f.after))
	defer func() {
		cancel()
		for range batches { // until it has ended
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return l, ctx.Err()
		case <-beat:
			if err := f.out.raw(": beat\n\n"); err != nil {
				return l, err
			}
		case batch, ok := <-batches:
			if !ok {
				return l, ctx.Err()
			}
			if errors.Is(batch.err, workflow.ErrCompacted) {
				_ = f.out.event("compacted", "", struct{}{}) // it ends here either way
			}
			if batch.err != nil {
				return l, batch.err
			}
			n := news{}
			for _, e := range batch.value {
				frame, err := sseEvent("event", strconv.FormatUint(e.Cursor, 10), api.NewEvent(e))
				if err != nil {
					return l, err
				}
				n.entries = append(n.entries, feedEntry{e.Cursor, e, frame})
			}
			if err := f.send(ctx, n); err != nil {
				return l, err
			}
			f.after = batch.value[len(batch.value)-1].Cursor
			next, ok, err := f.s.feed.listen(ctx, f.after)
			if err != nil {
				return l, err
			}
			l.leave()
			if l = next; ok {
				return l, nil
			}
		}
	}
}

// send writes what of the news the client asked for and may see.
func (f *follower) send(ctx context.Context, n news) error {
	var b bytes.Buffer
	put := func(frame []byte) error {
		_, _ = b.Write(frame) // never fails
		if b.Len() < maxWrite {
			return nil
		}
		err := f.out.write(b.Bytes())
		b.Reset()
		return err
	}
	for i := range n.entries {
		e := &n.entries[i]
		if !f.q.Matches(&e.event) {
			continue
		}
		seen, err := f.sight.event(ctx, &e.event)
		if err == nil && seen {
			err = put(e.frame)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range n.progress {
		if (f.q.Workflow != "" && f.q.Workflow != p.at.Workflow) || (f.q.Hardware != "" && f.q.Hardware != p.at.HardwareUID) {
			continue
		}
		seen, err := f.sight.machine(ctx, p.at.Machine, p.at.HardwareUID)
		if err != nil || !seen {
			continue // progress is told again when it moves on
		}
		if err := put(p.frame); err != nil {
			return err
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return f.out.write(b.Bytes())
}

// pumped is one step of an iterator.
type pumped[T any] struct {
	value T
	err   error
}

// pump runs a blocking iterator until ctx ends and closes the channel then.
func pump[T any](ctx context.Context, seq iter.Seq2[T, error]) <-chan pumped[T] {
	out := make(chan pumped[T])
	go func() {
		defer close(out)
		for v, err := range seq {
			select {
			case out <- pumped[T]{v, err}:
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
	frame, err := sseEvent(name, id, v)
	if err != nil {
		return err
	}
	return o.write(frame)
}

// sseEvent is one message of a stream.
func sseEvent(name, id string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return []byte(id + "event: " + name + "\ndata: " + string(data) + "\n\n"), nil
}

func (o *sseWriter) raw(text string) error { return o.write([]byte(text)) }

func (o *sseWriter) write(text []byte) error {
	// a recorder in a test has no deadline; a socket has
	_ = o.control.SetWriteDeadline(o.now().Add(writeLimit))
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	return o.control.Flush()
}
