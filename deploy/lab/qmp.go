package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// errOff is returned by whatever waits for a machine that ends.
var errOff = errors.New("the machine went off")

// Event is something that QEMU reported, for example RESET or SHUTDOWN.
type Event struct {
	Name string
	At   time.Time // by QEMU's clock, which is the host's
}

// qmpConn speaks the QEMU Machine Protocol (docs/interop/qmp-spec in QEMU): JSON
// objects, one per line, replies in the order of the commands, events between.
type qmpConn struct {
	conn    net.Conn
	replies chan qmpMessage
	done    chan struct{}

	command sync.Mutex // one command under way

	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed and replaced at each event
}

type qmpMessage struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event     string `json:"event"`
	Timestamp struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	} `json:"timestamp"`
}

// openQMP reads the greeting and enters command mode. The connection is closed
// by its owner, which also ends the reader.
func openQMP(ctx context.Context, conn net.Conn) (*qmpConn, error) {
	q := &qmpConn{conn: conn, replies: make(chan qmpMessage, 1), done: make(chan struct{}), changed: make(chan struct{})}
	go q.read()
	return q, q.run(ctx, "qmp_capabilities", nil, nil)
}

func (q *qmpConn) read() {
	defer close(q.done)
	in := bufio.NewReader(q.conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m qmpMessage
		if json.Unmarshal(line, &m) != nil {
			return
		}
		switch {
		case m.Event != "":
			q.record(Event{Name: m.Event, At: time.Unix(m.Timestamp.Seconds, m.Timestamp.Microseconds*1000)})
		case m.Return != nil || m.Error != nil:
			select {
			case q.replies <- m:
			default: // the answer to a command whose caller gave up
				<-q.replies
				q.replies <- m
			}
		}
	}
}

func (q *qmpConn) run(ctx context.Context, command string, args map[string]any, out any) error {
	q.command.Lock()
	defer q.command.Unlock()
	select {
	case <-q.replies: // left by a caller that gave up
	default:
	}
	req := map[string]any{"execute": command}
	if args != nil {
		req["arguments"] = args
	}
	if err := json.NewEncoder(q.conn).Encode(req); err != nil {
		return err
	}
	select {
	case m := <-q.replies:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", m.Error.Class, m.Error.Desc)
		}
		if out != nil {
			return json.Unmarshal(m.Return, out)
		}
		return nil
	case <-q.done:
		return errOff
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *qmpConn) record(ev Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = append(q.events, ev)
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *qmpConn) recorded() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Event(nil), q.events...)
}

func (q *qmpConn) wait(ctx context.Context, name string, n int) (Event, error) {
	for {
		q.mu.Lock()
		seen, changed := 0, q.changed
		for _, ev := range q.events {
			if ev.Name != name {
				continue
			}
			if seen++; seen == n {
				q.mu.Unlock()
				return ev, nil
			}
		}
		q.mu.Unlock()
		select {
		case <-changed:
		case <-q.done:
			return Event{}, errOff
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}
