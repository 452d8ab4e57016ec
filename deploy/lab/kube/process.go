package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program of a plane.
type Process struct {
	// Name is what Kill and Restart call it; its log is NAME.log.
	Name string
	Path string
	Args []string
	Env  []string // added to ours
	// Ready is the URL that answers 200 when the program may be used; empty: at once.
	Ready string
}

type process struct {
	Process
	log    string
	exited chan struct{} // nil before the first start
	err    error         // how it ended, once exited is closed
	cmd    *exec.Cmd
}

// Run starts a program beside the others, in the plane's namespace and with its
// folder as the working directory, and waits until it is ready. Stop ends it first.
func (p *Plane) Run(ctx context.Context, x Process) error {
	p.mu.Lock()
	if p.find(x.Name) != nil {
		p.mu.Unlock()
		return fmt.Errorf("%s is there already (Restart starts it again)", x.Name)
	}
	q := &process{Process: x, log: p.LogPath(x.Name)}
	p.procs = append(p.procs, q)
	p.mu.Unlock()
	return p.start(ctx, q)
}

// LogPath is the file that a program's output goes to.
func (p *Plane) LogPath(name string) string { return filepath.Join(p.Dir, "log", name+".log") }

// Kill ends a program as the out-of-memory killer would: SIGKILL, no farewell.
func (p *Plane) Kill(name string) error { return p.end(name, syscall.SIGKILL) }

// Terminate ends a program in order.
func (p *Plane) Terminate(name string) error { return p.end(name, syscall.SIGTERM) }

// Restart starts a program that ended again, with the same arguments.
func (p *Plane) Restart(ctx context.Context, name string) error {
	p.mu.Lock()
	q := p.find(name)
	p.mu.Unlock()
	if q == nil {
		return fmt.Errorf("nothing called %s runs here", name)
	}
	return p.start(ctx, q)
}

// PID is the process id of a program, 0 where it does not run.
func (p *Plane) PID(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.find(name)
	if q == nil || q.exited == nil || q.ended() {
		return 0
	}
	return q.cmd.Process.Pid
}

func (p *Plane) end(name string, s syscall.Signal) error {
	p.mu.Lock()
	q := p.find(name)
	p.mu.Unlock()
	if q == nil || q.exited == nil {
		return fmt.Errorf("nothing called %s runs here", name)
	}
	return q.end(s, 30*time.Second)
}

// find needs p.mu.
func (p *Plane) find(name string) *process {
	for _, q := range p.procs {
		if q.Name == name {
			return q
		}
	}
	return nil
}

func (q *process) ended() bool {
	select {
	case <-q.exited:
		return true
	default:
		return false
	}
}

func (q *process) end(s syscall.Signal, within time.Duration) error {
	if err := q.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-q.exited:
		return nil
	case <-time.After(within):
		return fmt.Errorf("%s did not end within %v of %v", q.Name, within, s)
	}
}

func (p *Plane) start(ctx context.Context, q *process) error {
	if q.exited != nil && !q.ended() {
		return fmt.Errorf("%s runs already", q.Name)
	}
	log, err := os.OpenFile(q.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := p.command(context.WithoutCancel(ctx), q.Path, q.Args...)
	cmd.Env = append(cmd.Env, q.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// Ctrl-C at the terminal is not for it; and it ends with us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	exited, started := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		// The kernel sends the signal when the thread that started the child ends, so
		// that thread waits for the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		once.Do(func() { started <- err })
		if err == nil {
			q.err = cmd.Wait()
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s: %w (make capi-env builds the tools)", q.Name, err)
	}
	p.mu.Lock()
	q.cmd, q.exited = cmd, exited
	p.mu.Unlock()
	return p.await(ctx, q)
}

// await returns when the program answers at its Ready URL.
func (p *Plane) await(ctx context.Context, q *process) error {
	if q.Ready == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.answers(ctx, q.Ready) {
			return nil
		}
		select {
		case <-q.exited:
			return fmt.Errorf("%s ended: %w\n%s", q.Name, q.err, tail(q.log, 15))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", q.Name, ctx.Err(), tail(q.log, 15))
		case <-tick.C:
		}
	}
}

func (p *Plane) answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	rs, err := p.http.Do(rq)
	if err != nil {
		return false
	}
	_ = rs.Body.Close()
	return rs.StatusCode == http.StatusOK
}

// tail is the last n lines of a file.
func tail(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
