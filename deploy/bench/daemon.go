package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is the real daemon on a data directory, without DHCP.
type server struct {
	cmd    *exec.Cmd
	exited chan error
	socket string
	health string // URL
	https  string // address
	took   time.Duration
}

// startServer returns when the daemon says that it is ready.
func startServer(ctx context.Context, data string) (*server, error) {
	ports, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	s := &server{socket: filepath.Join(data, "rs.sock"), health: "http://" + ports[0], https: ports[1], exited: make(chan error, 1)}
	conf := fmt.Sprintf("data: %s\nsocket: %s\ndhcp:\n  enabled: false\nhealth:\n  listen: %q\nhttps:\n  listen: %q\nhttp:\n  listen: %q\nworker:\n  listen: %q\ntftp:\n  listen: %q\nlog:\n  level: warn\n",
		data, s.socket, ports[0], ports[1], ports[2], ports[3], ports[4])
	path := filepath.Join(data, "rackstrap.yaml")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, "bin/rackstrap", "serve", "--config", path)
	s.cmd.Stderr = os.Stderr
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.exited <- s.cmd.Wait() }()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		if r, err := http.Get(s.health + "/readyz"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				s.took = time.Since(began)
				return s, nil
			}
		}
		select {
		case err := <-s.exited:
			return nil, fmt.Errorf("rackstrap serve ended: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-poll.C:
		}
	}
}

func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// kill ends one that a failed measurement left.
func (s *server) kill() { _ = s.cmd.Process.Kill() }

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return <-s.exited
}

// cpu is the processor time that the daemon has used, exact to 10 ms.
func (s *server) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] { // utime and stime, proc_pid_stat(5)
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory in MiB: all that is resident; what of it is the process's own; the most it was.
type memory struct{ rss, anon, peak float64 }

func (m memory) String() string {
	return fmt.Sprintf("%.0f MiB (%.0f of its own, the rest are pages of files; %.0f at most)", m.rss, m.anon, m.peak)
}

func (s *server) memory() memory {
	var m memory
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		var kib float64
		for name, at := range map[string]*float64{"VmRSS": &m.rss, "RssAnon": &m.anon, "VmHWM": &m.peak} {
			if _, err := fmt.Sscanf(line, name+": %f kB", &kib); err == nil {
				*at = kib / 1024
			}
		}
	}
	return m
}

// gauge reads one figure of /metrics.
func (s *server) gauge(name string) float64 {
	r, err := http.Get(s.health + "/metrics")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return f
		}
	}
	return 0
}

// door is a way in: the unix socket, or HTTPS with a token.
type door struct {
	name, token string
	dial        func(ctx context.Context, i int) (net.Conn, error)
}

func (s *server) socketDoor() door {
	return door{name: "socket", dial: func(ctx context.Context, _ int) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}
}

// httpsDoor comes from several addresses of the loopback: the daemon takes 64
// connections of one. Who we talk to is not in question here.
func (s *server) httpsDoor(token string) door {
	return door{name: "HTTPS", token: token, dial: func(ctx context.Context, i int) (net.Conn, error) {
		d := tls.Dialer{
			NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/50))}},
			Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
		}
		return d.DialContext(ctx, "tcp", s.https)
	}}
}

// client keeps connections open.
func (d door) client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx, 0) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial, MaxIdleConnsPerHost: 64}}
}

// call sends one request and reads the whole answer.
func (d door) call(ctx context.Context, c *http.Client, method, path, body string) (status, size int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://appliance"+path, strings.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	w, err := c.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer w.Body.Close()
	n, err := io.Copy(io.Discard, w.Body)
	return w.StatusCode, int(n), err
}
