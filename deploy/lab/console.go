package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// consoleLimit bounds what is kept of a serial line in memory; the log file has
// everything.
const consoleLimit = 4 << 20

// Line is one line that a machine wrote to its serial port.
type Line struct {
	At   time.Time // of its first character
	Text string    // without escape sequences and line end
}

// Console is a machine's serial line during one power-on: what it has written,
// for searching, and a way to type. Escape sequences are taken out, so text can
// be waited for as a person reads it.
type Console struct {
	conn net.Conn
	done chan struct{} // closed when the machine is off and all was read

	mu      sync.Mutex
	text    strings.Builder
	starts  []lineStart
	changed chan struct{} // closed and replaced when text grows
}

type lineStart struct {
	offset int
	at     time.Time
}

func newConsole(conn net.Conn) *Console {
	c := &Console{conn: conn, done: make(chan struct{}), changed: make(chan struct{})}
	go c.read()
	return c
}

func (c *Console) read() {
	defer close(c.done)
	defer c.conn.Close()
	var clean escapes
	buf := make([]byte, 16<<10)
	for {
		n, err := c.conn.Read(buf)
		if n > 0 {
			c.add(clean.strip(buf[:n]), time.Now())
		}
		if err != nil {
			return
		}
	}
}

func (c *Console) add(s string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := consoleLimit - c.text.Len(); len(s) > room {
		s = s[:room]
	}
	for _, line := range strings.SplitAfter(s, "\n") {
		if line == "" {
			continue
		}
		if have := c.text.String(); have == "" || strings.HasSuffix(have, "\n") {
			c.starts = append(c.starts, lineStart{len(have), at})
		}
		c.text.WriteString(line)
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wait returns when text stands in the output at or after offset from, and the
// offset behind it, from which to wait for what comes next. It fails when ctx
// ends or the machine goes off first; the error holds the last lines that came.
func (c *Console) Wait(ctx context.Context, from int, text string) (int, error) {
	searched := from
	for {
		c.mu.Lock()
		have, changed := c.text.String(), c.changed
		c.mu.Unlock()
		if len(have) > searched {
			if i := strings.Index(have[searched:], text); i >= 0 {
				return searched + i + len(text), nil
			}
			searched = max(from, len(have)-len(text))
		}
		var err error
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.done:
			select {
			case <-changed: // the last words came before the end
				continue
			default:
				err = errOff
			}
		}
		return 0, fmt.Errorf("waiting for %q on the serial line: %w; its end is:\n%s", text, err, tail(have, 15))
	}
}

// Text is all that was written since power-on, up to 4 MiB. Its length is an
// offset for Wait.
func (c *Console) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// Lines is Text by lines, each with the time at which it began.
func (c *Console) Lines() []Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.text.String()
	lines := make([]Line, len(c.starts))
	for i, s := range c.starts {
		end := len(text)
		if i+1 < len(c.starts) {
			end = c.starts[i+1].offset
		}
		lines[i] = Line{At: s.at, Text: strings.TrimSuffix(text[s.offset:end], "\n")}
	}
	return lines
}

// TimeOf is when the first line with text in it began. ok is false if there is none.
func (c *Console) TimeOf(text string) (at time.Time, ok bool) {
	for _, l := range c.Lines() {
		if strings.Contains(l.Text, text) {
			return l.At, true
		}
	}
	return time.Time{}, false
}

// Type sends keys to the machine's serial port.
func (c *Console) Type(keys string) error {
	_, err := io.WriteString(c.conn, keys)
	if errors.Is(err, net.ErrClosed) {
		return errOff
	}
	return err
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
