package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// logPiece is about how much of a log is read and sent at a time, in bytes.
	logPiece = 64 << 10
	// logLook is how often the end of an attempt is looked for while its log is followed;
	// text that comes wakes by itself.
	logLook = time.Second
)

// Logs reads what attempts wrote.
type Logs interface {
	// Window reads about limit bytes from offset on, as text that is harmless: the whole
	// characters of them, where they begin, and the size of the log, all in bytes.
	// workflow.ErrNotFound where nothing was written.
	Window(a workflow.Assignment, offset int64, limit int) (text []byte, from, size int64, err error)
	// Sizes are the sizes of the logs that there are of the workflow with that uid.
	Sizes(uid string) (map[workflow.Assignment]int64, error)
	// Grows is closed when the log grows.
	Grows(a workflow.Assignment) <-chan struct{}
}

func logRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/workflows/{name}/actions/{index}/attempts/{number}/log", Does: "Read what an attempt wrote", Role: RoleViewer, Claimer: true,
		Out: logBody{}, Query: []string{"offset", "limit", "tail", "follow"}, handle: (*server).attemptLog,
	}}
}

// logBody marks a body that is a log.
type logBody struct{}

// logWindow is what of a log is asked for.
type logWindow struct {
	offset int64
	limit  int64 // 0: all that there is
	tail   int64 // 0: from offset on
	follow bool
}

// attemptLog sends a window of a log as plain text. What machines write is neither
// shown as a page nor guessed to be one: the type is fixed, and a browser that is sent
// here runs nothing of it.
func (s *server) attemptLog(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	win, err := readLogWindow(r.URL.Query())
	if err != nil {
		return err
	}
	wf, err := s.workflows.find(ctx, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	a, err := attemptOf(wf, chi.URLParam(r, "index"), chi.URLParam(r, "number"))
	if err != nil {
		return err
	}
	running := !ended(wf, a)
	text, from, size, err := s.logWindow(a, &win)
	if errors.Is(err, workflow.ErrNotFound) && win.follow && running {
		err = nil // it comes
	}
	if errors.Is(err, workflow.ErrNotFound) {
		return noLog(wf, a, running)
	}
	if err != nil {
		return err
	}
	if win.offset > size {
		return badRequest(fmt.Sprintf("it has %d bytes by now", size), "offset=%d is after the end of the log", win.offset)
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", fmt.Sprintf("%s-%s-%d.log", wf.Meta.Name, wf.Status.Actions[a.Action].Name, a.Attempt+1)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set(api.LogOffset, strconv.FormatInt(from, 10))
	h.Set(api.LogSize, strconv.FormatInt(size, 10))
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	out := logSender{s: s, out: &sseWriter{w: w, control: http.NewResponseController(w), now: s.Now}, name: wf.Meta.Name, at: a, win: win}
	if err := out.run(ctx, text, from, size); err != nil && ctx.Err() == nil {
		s.Log.Debug("attempt log not sent to its end", "workflow", wf.Meta.Name, "err", err)
		panic(http.ErrAbortHandler) // the status is sent; a cut connection says that this is not all
	}
	return nil
}

// readLogWindow reads the query.
func readLogWindow(q url.Values) (logWindow, error) {
	var win logWindow
	for name, to := range map[string]*int64{"offset": &win.offset, "limit": &win.limit, "tail": &win.tail} {
		n, err := number(q, name, 0, 1<<40)
		if err != nil {
			return win, err
		}
		*to = int64(n)
	}
	if f := q.Get("follow"); f != "" {
		var err error
		if win.follow, err = strconv.ParseBool(f); err != nil {
			return win, badRequest("write follow=true", "follow=%.40q is neither true nor false", f)
		}
	}
	switch {
	case win.tail > 0 && (q.Has("offset") || q.Has("limit")):
		return win, badRequest("ask for one or the other", "tail is the end of the log: it goes neither with offset nor with limit")
	case win.follow && win.limit > 0:
		return win, badRequest("leave one of them out", "follow goes on until the attempt ends, and limit ends it before")
	}
	return win, nil
}

// attemptOf reads which attempt a path means: actions count from 0, as in the status,
// attempts from 1, as events and people count them.
func attemptOf(w *workflow.Workflow, index, number string) (workflow.Assignment, error) {
	gone := func(format string, args ...any) (workflow.Assignment, error) {
		return workflow.Assignment{}, &api.Problem{
			Status: http.StatusNotFound, Code: api.CodeNotFound, Detail: fmt.Sprintf(format, args...),
			Hint: "actions count from 0, attempts from 1: rackstrap workflow get " + w.Meta.Name + " -o yaml",
		}
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(w.Status.Actions) {
		return gone("workflow %q has %d actions, and none with the index %.20q", w.Meta.Name, len(w.Status.Actions), index)
	}
	attempts := w.Status.Actions[i].Attempts
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(attempts) {
		return gone("action %q of workflow %q has %d attempts, and no attempt %.20q", w.Status.Actions[i].Name, w.Meta.Name, len(attempts), number)
	}
	return workflow.Assignment{Workflow: w.Meta.UID, Action: i, Attempt: n - 1}, nil
}

// ended reports whether an attempt writes nothing any more.
func ended(w *workflow.Workflow, a workflow.Assignment) bool {
	return w.Status.State.Ended() || w.Meta.UID != a.Workflow || w.Status.Actions[a.Action].Attempts[a.Attempt].State.Ended()
}

// addLogSizes says of each attempt how long its log is.
func addLogSizes(l Logs, w *workflow.Workflow) error {
	sizes, err := l.Sizes(w.Meta.UID)
	for a, n := range sizes {
		if a.Action < len(w.Status.Actions) && a.Attempt < len(w.Status.Actions[a.Action].Attempts) {
			w.Status.Actions[a.Action].Attempts[a.Attempt].LogBytes = n
		}
	}
	return err
}

// noLog says why there is no log.
func noLog(w *workflow.Workflow, a workflow.Assignment, running bool) error {
	p := &api.Problem{
		Status: http.StatusNotFound, Code: api.CodeNotFound,
		Detail: fmt.Sprintf("attempt %d of action %q of workflow %q wrote no log", a.Attempt+1, w.Status.Actions[a.Action].Name, w.Meta.Name),
		Hint:   "its end is in the timeline: rackstrap timeline " + w.Spec.Hardware,
	}
	if running {
		p.Detail, p.Hint = p.Detail+" yet", "wait for it with follow=true: rackstrap workflow logs "+w.Meta.Name+" --follow"
	}
	return p
}

// logWindow reads the first piece; a tail begins with a whole line, if one begins in it.
func (s *server) logWindow(a workflow.Assignment, win *logWindow) (text []byte, from, size int64, err error) {
	if win.tail == 0 {
		return s.Logs.Window(a, win.offset, win.piece(win.offset))
	}
	if _, _, size, err = s.Logs.Window(a, 0, 1); err != nil {
		return nil, 0, 0, err
	}
	text, from, size, err = s.Logs.Window(a, max(size-win.tail, 0), logPiece)
	if from > 0 {
		for i, b := range text {
			if b == '\n' && i+1 < len(text) {
				return text[i+1:], from + int64(i) + 1, size, err
			}
		}
	}
	return text, from, size, err
}

// piece is how much is read at a time, from a byte on.
func (l logWindow) piece(at int64) int {
	if l.limit == 0 {
		return logPiece
	}
	return int(min(logPiece, l.offset+l.limit-at))
}

// logSender sends one log.
type logSender struct {
	s    *server
	out  *sseWriter
	name string
	at   workflow.Assignment
	win  logWindow
}

// run sends from the first piece on: up to the size of then, and, where that is asked
// for, what comes until the attempt ends.
func (l *logSender) run(ctx context.Context, text []byte, from, size int64) error {
	next := from
	// send sends a piece and what comes after it, up to end.
	send := func(text []byte, end int64) error {
		for {
			if len(text) > 0 {
				if err := l.out.write(text); err != nil {
					return err
				}
				next += int64(len(text))
			}
			limit := l.win.piece(next)
			if next >= end || limit <= 0 {
				return nil
			}
			var err error
			if text, _, _, err = l.s.Logs.Window(l.at, next, limit); err != nil {
				return err
			}
			beyond := l.win.limit > 0 && next+int64(len(text)) > l.win.offset+l.win.limit // by a character that begins before
			if len(text) == 0 || beyond {
				return nil
			}
		}
	}
	err := send(text, size)
	if err != nil || !l.win.follow {
		return err
	}
	if err := l.out.control.Flush(); err != nil {
		return err // nothing was there to be sent: the header says that it goes on
	}
	look := time.NewTicker(logLook)
	defer look.Stop()
	for due := true; ; {
		// in this order: what was written before the end is read after it was seen
		grows := l.s.Logs.Grows(l.at)
		over := false
		if due { // not for each piece: how many there are is a worker's choice
			var err error
			if over, err = l.over(ctx); err != nil {
				return err
			}
		}
		text, _, size, err := l.s.Logs.Window(l.at, next, logPiece)
		if err != nil && !errors.Is(err, workflow.ErrNotFound) {
			return err
		}
		if err := send(text, size); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-grows:
			due = false
		case <-look.C:
			due = true
		}
	}
}

// over reports whether the attempt has ended, or its workflow is gone, or not the
// caller's any more.
func (l *logSender) over(ctx context.Context) (bool, error) {
	w, err := l.s.workflows.get(ctx, l.name)
	if errors.Is(err, workflow.ErrNotFound) {
		return true, nil
	}
	if err != nil || ended(w, l.at) {
		return true, err
	}
	seen, err := l.s.workflows.seen(ctx, w) // a claim may have ended since
	return !seen, err
}
