package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

// Message is one thing that a stream says; exactly one of Event, Progress and
// Compacted is set.
type Message struct {
	Event    *api.Event
	Progress *workflow.Progress
	// Compacted: events were missed, because the cursor was older than the log. What
	// is stored follows.
	Compacted bool
}

const (
	// firstRetry and lastRetry bound the pause before a broken stream is made again.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
	// silence is how long a stream may say nothing: three heartbeats.
	silence = 45 * time.Second
)

// Events streams what happens after the cursor, or, for 0, what is stored and then
// what happens. A stream that breaks is made again and goes on where it was, for as
// long as ctx lasts; what was seen already may be seen once more. The error ends it:
// the daemon's *api.Problem, an *Unreachable on the first try, or ctx's.
func (c *Client) Events(ctx context.Context, after uint64, f Filter) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s := &stream{c: c, filter: f, cursor: after, yield: yield}
		pause := firstRetry
		for first := true; ; first = false {
			before := s.messages
			err := s.once(ctx)
			if errors.Is(err, errStopped) {
				return
			}
			if ctx.Err() != nil {
				yield(Message{}, ctx.Err())
				return
			}
			var p *api.Problem
			if (first && s.messages == 0 && !s.connected) || (errors.As(err, &p) && p.Status < http.StatusInternalServerError) {
				yield(Message{}, err)
				return
			}
			if f.OnRetry != nil {
				f.OnRetry(err)
			}
			if s.messages > before {
				pause = firstRetry
			}
			if !sleep(ctx, pause) {
				yield(Message{}, ctx.Err())
				return
			}
			pause = min(2*pause, lastRetry)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var errStopped = errors.New("the caller has enough")

// stream is one subscription over its connections.
type stream struct {
	c         *Client
	filter    Filter
	cursor    uint64
	connected bool
	messages  int
	yield     func(Message, error) bool
}

// once reads one connection to its end.
func (s *stream) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rq := request{method: http.MethodGet, path: "/events", query: s.filter.query(), header: http.Header{"Accept": {"text/event-stream"}}}
	if s.cursor > 0 {
		rq.header.Set("Last-Event-ID", strconv.FormatUint(s.cursor, 10))
	}
	resp, err := s.c.send(ctx, rq)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s.connected = true
	// a daemon whose machine died says nothing, not even goodbye
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	return s.read(resp.Body, func() { dead.Reset(silence) })
}

// read parses the stream as the HTML standard says (section 9.2.6), as far as our
// daemon uses it: one data line each.
func (s *stream) read(r io.Reader, alive func()) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), 4<<20)
	var name, data, id string
	for sc.Scan() {
		alive()
		line := sc.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if n, err := strconv.ParseUint(id, 10, 64); err == nil {
				s.cursor = n
			}
			if err := s.dispatch(name, data); err != nil {
				return err
			}
			name, data, id = "", "", ""
		case field == "event":
			name = value
		case field == "data":
			data = value
		case field == "id":
			id = value
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

func (s *stream) dispatch(name, data string) error {
	var m Message
	var err error
	switch name {
	case "event":
		m.Event = new(api.Event)
		err = json.Unmarshal([]byte(data), m.Event)
	case "progress":
		m.Progress = new(workflow.Progress)
		err = json.Unmarshal([]byte(data), m.Progress)
	case "compacted":
		m.Compacted = true
		s.cursor = 0
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	s.messages++
	if !s.yield(m, nil) {
		return errStopped
	}
	return nil
}
