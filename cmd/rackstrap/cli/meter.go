package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// meter shows how far a transfer is: a bar on a terminal, a line every ten seconds
// elsewhere.
type meter struct {
	w    io.Writer
	tty  bool
	what string
	rate estimator

	mu    sync.Mutex
	next  time.Time
	ended bool
}

func newMeter(w io.Writer, what string) *meter { return &meter{w: w, tty: isTTY(w), what: what} }

// set is called from the goroutine that sends.
func (m *meter) set(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.rate.add(now, done)
	if m.next.IsZero() && !m.tty {
		m.next = now.Add(10 * time.Second)
	}
	if m.ended || now.Before(m.next) {
		return
	}
	m.next = now.Add(100 * time.Millisecond)
	text := m.what + ": " + amount(done, total, &m.rate)
	if m.tty {
		_, _ = fmt.Fprintf(m.w, "\r\x1b[K%s %s", bar(done, total, 24), text)
		return
	}
	m.next = now.Add(10 * time.Second)
	_, _ = fmt.Fprintln(m.w, text)
}

// end takes the bar away.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	if m.tty {
		_, _ = fmt.Fprint(m.w, "\r\x1b[K")
	}
}

func bar(done, total int64, width int) string {
	if total <= 0 {
		return ""
	}
	full := int(min(int64(width), done*int64(width)/total))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "]"
}

// amount is how far a transfer is, in words.
func amount(done, total int64, e *estimator) string {
	parts := []string{size(done)}
	if total > 0 {
		parts = []string{fmt.Sprintf("%d %%", min(100, done*100/total)), size(done) + " of " + size(total)}
	}
	if v := e.perSecond(); v > 0 {
		parts = append(parts, rate(int64(v*1000), 1000*time.Second))
		if total > done {
			parts = append(parts, span(time.Duration(float64(total-done)/v*float64(time.Second)))+" left")
		}
	}
	return strings.Join(parts, ", ")
}

// estimator finds a rate from what was reported in the last seconds.
type estimator struct {
	at   []time.Time
	done []int64
}

const estimateOver = 5 * time.Second

func (e *estimator) add(at time.Time, done int64) {
	if n := len(e.done); n > 0 && (done < e.done[n-1] || at.Before(e.at[n-1])) {
		e.at, e.done = nil, nil // it began anew
	}
	// a sample every 100 ms is enough
	if n := len(e.at); n > 1 && at.Sub(e.at[n-2]) < 100*time.Millisecond {
		e.at[n-1], e.done[n-1] = at, done
		return
	}
	e.at, e.done = append(e.at, at), append(e.done, done)
	for len(e.at) > 2 && at.Sub(e.at[1]) > estimateOver {
		e.at, e.done = e.at[1:], e.done[1:]
	}
}

// perSecond is 0 as long as there is nothing to tell it from.
func (e *estimator) perSecond() float64 {
	n := len(e.at)
	if n < 2 {
		return 0
	}
	d := e.at[n-1].Sub(e.at[0]).Seconds()
	if d <= 0 {
		return 0
	}
	return float64(e.done[n-1]-e.done[0]) / d
}
