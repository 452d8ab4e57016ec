package ndp

import (
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// perSecond is how many answers a machine gets in a second. iPXE asks six or
	// seven times in all, the first three within a second.
	perSecond = 5
	// sweepAt is the number of machines from which the ones of the past are dropped.
	sweepAt = 256
)

// limiter counts answers. It remembers only machines that were answered, so what
// strangers send takes no memory. The zero value is ready.
type limiter struct {
	answers map[hardware.MAC]answers
}

type answers struct {
	since time.Time
	n     int
}

// allow reports whether mac may be answered at now, and counts it if so.
func (l *limiter) allow(mac hardware.MAC, now time.Time) bool {
	a := l.answers[mac]
	if age := now.Sub(a.since); age >= time.Second || age < 0 {
		a = answers{since: now}
	}
	if a.n >= perSecond {
		return false
	}
	a.n++
	if l.answers == nil {
		l.answers = map[hardware.MAC]answers{}
	}
	if len(l.answers) >= sweepAt {
		for m, old := range l.answers {
			if now.Sub(old.since) >= time.Second {
				delete(l.answers, m)
			}
		}
	}
	l.answers[mac] = a
	return true
}
