package pid1

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Console writes lines to every console of the kernel (a serial line and a
// screen, say) and to the kernel's log. A line never blocks the worker: a console
// that does not take its lines (a serial port with flow control and nobody at the
// other end) loses them.
type Console struct {
	sinks  []*sink
	uptime func() time.Duration
}

// consoleLines is how many lines wait for a slow console before new ones are lost.
const consoleLines = 256

type sink struct {
	name  string
	lines chan string
	idle  sync.WaitGroup // lines that were taken and are not yet written
}

// OpenConsoles opens all consoles that the kernel names in
// /sys/class/tty/console/active, and /dev/kmsg. Without any it writes to the
// standard error.
func OpenConsoles(uptime func() time.Duration) *Console {
	active, _ := os.ReadFile("/sys/class/tty/console/active")
	var outs []io.Writer
	var names []string
	for _, name := range consoleNames(string(active)) {
		if f, err := os.OpenFile(filepath.Join("/dev", name), os.O_WRONLY, 0); err == nil {
			outs, names = append(outs, f), append(names, name)
		}
	}
	if len(outs) == 0 {
		outs, names = append(outs, os.Stderr), append(names, "stderr")
	}
	if f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0); err == nil {
		outs, names = append(outs, f), append(names, kmsg)
	}
	return NewConsole(uptime, names, outs)
}

// kmsg is the kernel's log. Lines go there with level 6 (info), which the kernel
// does not print: the consoles have them already.
const kmsg = "kmsg"

// consoleNames reads the kernel's list of active consoles, for example "tty0 ttyS0".
func consoleNames(active string) []string {
	var out []string
	for _, n := range strings.Fields(active) {
		if n == filepath.Base(n) && n != "." && n != ".." {
			out = append(out, n)
		}
	}
	return out
}

// NewConsole writes to the given writers. Their goroutines live as long as the
// program, as a console does.
func NewConsole(uptime func() time.Duration, names []string, outs []io.Writer) *Console {
	c := &Console{uptime: uptime}
	for i, w := range outs {
		s := &sink{name: names[i], lines: make(chan string, consoleLines)}
		c.sinks = append(c.sinks, s)
		go s.run(w)
	}
	return c
}

func (s *sink) run(w io.Writer) {
	for line := range s.lines {
		_, _ = io.WriteString(w, line)
		s.idle.Done()
	}
}

// Say prints one message, each of its lines with the time since the kernel's start.
func (c *Console) Say(format string, args ...any) {
	t := c.uptime().Seconds()
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		line = printable(line)
		for _, s := range c.sinks {
			text := fmt.Sprintf("[%8.3f] rackstrap: %s\r\n", t, line)
			if s.name == kmsg {
				text = "<6>rackstrap: " + line + "\n"
			}
			s.idle.Add(1)
			select {
			case s.lines <- text:
			default:
				s.idle.Done()
			}
		}
	}
}

// Flush waits until all lines are written, at most for limit.
func (c *Console) Flush(limit time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, s := range c.sinks {
			s.idle.Wait()
		}
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// maxLine is the longest line that is printed, in bytes; the kernel's log takes
// about a thousand.
const maxLine = 800

// printable replaces control characters, with which text from elsewhere could
// drive a terminal.
func printable(s string) string {
	if len(s) > maxLine {
		s = s[:maxLine] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}
