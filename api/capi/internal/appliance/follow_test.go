package appliance

import (
	"testing"
	"time"
)

// A stream that is refused each time is asked for ever more rarely; one that lasted is
// asked for again at once.
func TestPauseAfter(t *testing.T) {
	t.Parallel()
	pause, sum := time.Duration(0), time.Duration(0)
	for range 10 {
		pause = pauseAfter(pause, time.Millisecond)
		sum += pause
	}
	if pause != lastPause || sum < 3*lastPause {
		t.Errorf("after ten refusals %v, %v in all", pause, sum)
	}
	if got := pauseAfter(lastPause, time.Hour); got != firstPause {
		t.Errorf("after an hour: %v", got)
	}
}
