package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/workflow"
)

// Why an attempt was stopped, as causes of its context.
var (
	errTimeout   = errors.New("ran out of time")
	errCancelled = errors.New("cancelled by the appliance")
	errReplaced  = errors.New("the appliance went on to another attempt")
	errStopping  = errors.New("the worker stops")
)

// job is one attempt of one action on this machine.
type job struct {
	assign *workerpb.Assign
	stop   context.CancelCauseFunc
	done   chan struct{}
	shown  *display
}

// assignmentKey compares assignments.
type assignmentKey struct {
	workflow        string
	action, attempt uint32
}

func keyOf(a *workerpb.Assignment) assignmentKey {
	return assignmentKey{a.GetWorkflow(), a.GetAction(), a.GetAttempt()}
}

// jobs runs one attempt at a time. An attempt lives as long as the worker, not as
// long as a connection.
type jobs struct {
	c   *Config
	out *outbox
	// stuck is told of an attempt that did not stop when it had to.
	stuck func(reason string)
	// after is told what follows a success, with the number of its report.
	after func(seq uint64, what action.After)
	// written is called where actions wrote to the disks and no other may come, before
	// that is reported: the appliance may then send the machine away.
	written func(ctx context.Context)

	mu      sync.Mutex
	current *job
	next    *workerpb.Assign // waits for the end of current
	wrote   bool             // to a disk, since written was called
	// last is the report of the latest attempt that ended, for an appliance that
	// asks for the same attempt again.
	last    *workerpb.Report
	lastSeq uint64
}

// Running is what Hello says: the attempt that runs, or whose report is still on
// its way.
func (j *jobs) Running() *workerpb.Assignment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current != nil {
		return j.current.assign.GetAssignment()
	}
	if j.last != nil {
		if waiting, _ := j.out.Waiting(j.lastSeq); waiting {
			return j.last.GetAssignment()
		}
	}
	return nil
}

// Assign starts an attempt, or does nothing if it is the one that runs. One that
// has ended is reported again. Another one that runs is stopped first.
func (j *jobs) Assign(ctx context.Context, a *workerpb.Assign) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := keyOf(a.GetAssignment())
	switch {
	case j.current != nil && keyOf(j.current.assign.GetAssignment()) == k:
	case j.current != nil:
		j.next = a
		j.current.stop(errReplaced)
	case j.last != nil && keyOf(j.last.GetAssignment()) == k:
		if waiting, _ := j.out.Waiting(j.lastSeq); !waiting {
			j.lastSeq = j.out.Add(&workerpb.Up{Body: &workerpb.Up_Report{Report: j.last}})
		}
	default:
		j.start(ctx, a)
	}
}

// Cancel stops the attempt, if it is the one that runs or waits.
func (j *jobs) Cancel(a *workerpb.Assignment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current != nil && keyOf(j.current.assign.GetAssignment()) == keyOf(a) {
		j.current.stop(errCancelled)
	}
	if j.next != nil && keyOf(j.next.GetAssignment()) == keyOf(a) {
		j.next = nil
	}
}

// Stop stops whatever runs and waits for its end, at most for limit.
func (j *jobs) Stop(limit time.Duration) {
	j.mu.Lock()
	j.next = nil
	cur := j.current
	j.mu.Unlock()
	if cur == nil {
		return
	}
	cur.stop(errStopping)
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-cur.done:
	case <-t.C:
	}
}

// start is called with the lock held.
func (j *jobs) start(ctx context.Context, a *workerpb.Assign) {
	jctx, stop := context.WithCancelCause(ctx)
	jb := &job{assign: a, stop: stop, done: make(chan struct{}), shown: newDisplay(a)}
	j.current = jb
	go j.run(ctx, jctx, jb)
}

// run carries the attempt out, and the one that waits for it.
func (j *jobs) run(ctx, jctx context.Context, jb *job) {
	defer jb.stop(nil)
	stopTimers := j.limit(jctx, jb)
	ticker := j.show(jb)
	began := time.Now()
	log := slog.New(slog.NewTextHandler(logWriter{j.out, jb.assign.GetAssignment()}, &slog.HandlerOptions{ReplaceAttr: logAttr}))
	log.Info("attempt starts", "action", jb.shown.Title(), "worker", j.c.Version, "timeout", timeoutText(jb.assign))
	res, err := j.call(jctx, jb, log)
	ticker()
	stopTimers()
	if ctx.Err() != nil || errors.Is(context.Cause(jctx), errStopping) {
		// The worker ends; the appliance sees the attempt as interrupted.
		j.mu.Lock()
		j.current = nil
		j.mu.Unlock()
		close(jb.done)
		return
	}
	r := report(jb.assign, res, err, context.Cause(jctx))
	j.c.Say("%s: %s", jb.shown.Title(), endText(r))
	log.Log(ctx, endLevel(r), "attempt ended", "outcome", endText(r), "took", time.Since(began).Round(time.Millisecond), "permanent", r.GetPermanent())
	if j.settle(jb.assign, res, err) {
		j.written(ctx)
	}
	j.mu.Lock()
	j.current, j.last = nil, r
	j.lastSeq = j.out.Add(&workerpb.Up{Body: &workerpb.Up_Report{Report: r}})
	seq, next := j.lastSeq, j.next
	j.next = nil
	if next != nil {
		j.start(ctx, next)
	}
	j.mu.Unlock()
	close(jb.done)
	if err == nil && next == nil && res.After != action.Continue {
		j.after(seq, res.After)
	}
}

// settle notes whether an attempt may have written to a disk; it reports whether the
// disks are to be looked at: something was written, and this was the last action, or it
// failed and nobody knows what follows.
func (j *jobs) settle(a *workerpb.Assign, res action.Result, err error) bool {
	last := err != nil || res.After != action.Continue || a.GetAssignment().GetAction()+1 == a.GetActions()
	j.mu.Lock()
	defer j.mu.Unlock()
	wrote := j.wrote || err != nil || res.Disk != ""
	j.wrote = wrote && !last
	return wrote && last
}

// limit ends the attempt when its time is over, and the machine's patience when it
// goes on for stopGrace after it was told to stop: a disk that hangs in the kernel
// cannot be left behind otherwise.
func (j *jobs) limit(ctx context.Context, jb *job) (stop func()) {
	var out *time.Timer
	if ms := jb.assign.GetTimeoutMs(); ms > 0 {
		out = time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { jb.stop(errTimeout) })
	}
	unhook := context.AfterFunc(ctx, func() {
		t := time.NewTimer(stopGrace)
		defer t.Stop()
		select {
		case <-jb.done:
		case <-t.C:
			j.stuck(fmt.Sprintf("%s did not stop within %v", jb.shown.Title(), stopGrace))
		}
	})
	return func() {
		if out != nil {
			out.Stop()
		}
		unhook()
	}
}

// stopGrace is how long an action may take to stop.
const stopGrace = 2 * time.Minute

// call runs the runner. A panic in it is the attempt's failure, not the worker's.
func (j *jobs) call(ctx context.Context, jb *job, log *slog.Logger) (res action.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			j.out.Log(jb.assign.GetAssignment(), debug.Stack())
			err = fmt.Errorf("the worker's action broke: %v (a fault of Rackstrap: please report it with the log of this action)", p)
		}
	}()
	a := jb.assign
	runner := j.c.Runners[workflow.Kind(a.GetKind())]
	if runner == nil {
		return res, unknownKindError(a.GetKind())
	}
	j.c.Say("%s starts", jb.shown.Title())
	if j.c.Ready != nil {
		j.c.Ready(ctx)
	}
	if err := context.Cause(ctx); err != nil {
		return res, err
	}
	env := j.c.Env()
	env.Workflow = a.GetAssignment().GetWorkflow()
	env.Log = log
	env.Progress = func(p action.Progress) {
		jb.shown.Set(p)
		j.out.Progress(&workerpb.Progress{Assignment: a.GetAssignment(), Done: p.Done, Total: p.Total, Written: p.Written, Note: hardware.PlainText(p.Note, maxNote)})
	}
	return runner.Run(ctx, env, a.GetOptions())
}

// unknownKindError: the appliance is newer than this worker.
type unknownKindError string

func (k unknownKindError) Error() string {
	return fmt.Sprintf("this worker has no action %q (its initramfs is older than the appliance: run `make assets` and build again)", string(k))
}

// logWriter sends what is logged about an attempt.
type logWriter struct {
	out *outbox
	a   *workerpb.Assignment
}

func (w logWriter) Write(b []byte) (int, error) {
	w.out.Log(w.a, b)
	return len(b), nil
}

// logAttr makes the lines of a log shorter: what is at level INFO does not say so, and
// times are UTC, as those of all machines and of the appliance are.
func logAttr(groups []string, a slog.Attr) slog.Attr {
	switch {
	case len(groups) > 0:
	case a.Key == slog.LevelKey && a.Value.Any() == slog.LevelInfo:
		return slog.Attr{}
	case a.Key == slog.TimeKey:
		return slog.String(slog.TimeKey, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return a
}

func timeoutText(a *workerpb.Assign) string {
	if a.GetTimeoutMs() == 0 {
		return "none"
	}
	return (time.Duration(a.GetTimeoutMs()) * time.Millisecond).String()
}

func endLevel(r *workerpb.Report) slog.Level {
	if r.GetOutcome() == workerpb.Outcome_OUTCOME_SUCCEEDED {
		return slog.LevelInfo
	}
	return slog.LevelError
}
