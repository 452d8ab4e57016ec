package l2

import (
	"math/rand/v2"
	"time"
)

// Line is one direction of a cable.
type Line struct {
	delay  time.Duration
	loss   float64
	rate   int64
	chance *rand.Rand
	free   time.Time // when the frame before this has left
	lost   int       // frames
}

// newLine is the direction (0 or 1) of a port's cable.
func newLine(p *Port, direction uint64) *Line {
	return &Line{delay: p.Delay, loss: p.Loss, rate: p.Rate, chance: rand.New(rand.NewPCG(p.Seed, direction))}
}

// Send says when a frame of size bytes that is sent at now arrives; false: never.
func (l *Line) Send(now time.Time, size int) (time.Time, bool) {
	// A lost frame takes its time on the line, too.
	if l.rate > 0 {
		if l.free.Before(now) {
			l.free = now
		}
		l.free = l.free.Add(time.Duration(int64(size) * 8 * int64(time.Second) / l.rate))
		now = l.free
	}
	if l.loss > 0 && l.chance.Float64() < l.loss {
		l.lost++
		return time.Time{}, false
	}
	return now.Add(l.delay), true
}
