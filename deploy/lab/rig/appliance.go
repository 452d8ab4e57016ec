// Package rig puts a Rackstrap appliance into a lab: the real binary with its own
// configuration, started, killed and asked as an operator would. The demo and the
// end-to-end tests share it.
package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
)

// Appliance is a daemon in a lab. Its data outlives Kill and Start.
type Appliance struct {
	Client *client.Client
	Socket string
	Log    string // path of what the daemon writes to stderr
	Config string // path of its configuration

	ns     *lab.Namespace
	bin    string
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of the process, once exited is closed
}

// NewAppliance prepares an appliance with the binary bin below dir, which serves the
// interface iface of the namespace ns. It is not started. Unix socket paths are short
// (108 bytes), so the socket is in the runtime directory of dir's own name.
func NewAppliance(ns *lab.Namespace, iface, bin, dir string) (*Appliance, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("%w (build it with: make build)", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	a := &Appliance{
		ns: ns, bin: bin, dir: dir,
		Socket: filepath.Join(dir, "rs.sock"), Log: filepath.Join(dir, "rackstrap.log"), Config: filepath.Join(dir, "rackstrap.yaml"),
	}
	conf := fmt.Sprintf("data: %s\nsocket: %s\ninterfaces: [%s]\n", filepath.Join(dir, "data"), a.Socket, iface)
	if err := os.WriteFile(a.Config, []byte(conf), 0o644); err != nil {
		return nil, err
	}
	a.Client = client.New(client.Options{Socket: a.Socket})
	return a, nil
}

// Start runs the daemon and returns when it says that it is ready, as systemd
// would hear it (sd_notify).
func (a *Appliance) Start(ctx context.Context) error {
	notify := filepath.Join(a.dir, "notify.sock")
	if err := os.RemoveAll(notify); err != nil {
		return err
	}
	pc, err := net.ListenPacket("unixgram", notify)
	if err != nil {
		return err
	}
	defer pc.Close()
	logFile, err := os.OpenFile(a.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := a.ns.Command(context.WithoutCancel(ctx), a.bin, "serve", "--config", a.Config)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // Ctrl-C at the terminal is not for it
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	a.cmd, a.exited = cmd, exited
	go func() { a.err = cmd.Wait(); close(exited) }()

	ready := make(chan error, 1)
	go func() {
		buf := make([]byte, 256)
		n, _, err := pc.ReadFrom(buf)
		if err == nil && !strings.Contains(string(buf[:n]), "READY=1") {
			err = fmt.Errorf("unexpected notification %q", buf[:n])
		}
		ready <- err
	}()
	select {
	case err := <-ready:
		return err
	case <-exited:
		return fmt.Errorf("rackstrap serve ended: %w\n%s", a.err, tail(a.Log, 20))
	case <-ctx.Done():
		return fmt.Errorf("rackstrap serve is not ready: %w\n%s", ctx.Err(), tail(a.Log, 20))
	}
}

// PID is the daemon's process id, also across `ip netns exec`, which execs it.
func (a *Appliance) PID() int { return a.cmd.Process.Pid }

// Kill ends the daemon as the out-of-memory killer would: SIGKILL, no farewell.
func (a *Appliance) Kill() error { return a.signal(syscall.SIGKILL) }

// Stop ends the daemon in order and returns the error that it ended with.
func (a *Appliance) Stop() error {
	if err := a.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return a.err
}

func (a *Appliance) signal(s os.Signal) error {
	if a.cmd == nil {
		return errors.New("not started")
	}
	if err := a.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-a.exited:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("rackstrap serve did not end within 30 s of %v", s)
	}
}

// tail is the last n lines of a file.
func tail(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// MemoryMiB is the daemon's resident memory: now and at its highest.
func (a *Appliance) MemoryMiB() (now, peak float64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			now = kib / 1024
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			peak = kib / 1024
		}
	}
	return now, peak
}
