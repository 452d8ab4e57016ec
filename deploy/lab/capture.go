package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Capture is a running recording of the LAN.
type Capture struct {
	cmd  *exec.Cmd
	once sync.Once
	done chan struct{}
	err  error
}

// Capture records every frame on the bridge to path, in pcap format, from the
// moment it returns. It needs tcpdump.
func (l *Lab) Capture(ctx context.Context, path string) (*Capture, error) {
	cmd := l.Command(context.Background(), "tcpdump", "-i", bridge, "-Z", "root", "-U", "--immediate-mode", "-w", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Capture{cmd: cmd, done: make(chan struct{})}
	listening := make(chan error, 1)
	go c.wait(said, listening)
	select {
	case err = <-listening:
	case <-ctx.Done():
		err = errors.Join(ctx.Err(), c.Stop())
	}
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", path, err)
	}
	l.mu.Lock()
	l.captures = append(l.captures, c)
	l.mu.Unlock()
	return c, nil
}

// wait reads what tcpdump says until its end. Its first "listening on" means
// that the socket is open.
func (c *Capture) wait(said io.Reader, listening chan<- error) {
	defer close(c.done)
	var all strings.Builder
	ready := false
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		if !ready && strings.Contains(lines.Text(), "listening on") {
			ready = true
			listening <- nil
		}
	}
	c.err = c.cmd.Wait()
	if !ready {
		listening <- fmt.Errorf("tcpdump: %w: %s", c.err, all.String())
		c.err = nil
	}
}

// Stop ends the recording and completes the file. It may be called again.
func (c *Capture) Stop() error {
	c.once.Do(func() {
		if err := c.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			_ = c.cmd.Process.Kill()
		}
	})
	<-c.done
	return c.err
}
