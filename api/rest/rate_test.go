package rest

import (
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// The rate is that between two reports, is kept while none comes, and ends with them.
func TestRate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	p := func(name string, action int, done int64, s int) workflow.Progress {
		return workflow.Progress{Workflow: name, Action: action, Done: done, At: at.Add(time.Duration(s) * time.Second)}
	}
	var tr trend
	for _, tc := range []struct {
		s       int // now
		running []workflow.Progress
		want    int64
	}{
		{0, []workflow.Progress{p("a", 0, 0, 0), p("b", 0, 1000, 0)}, 0},
		{1, []workflow.Progress{p("a", 0, 1e9, 1)}, 0}, // asked again too soon
		{2, []workflow.Progress{p("a", 0, 200, 2), p("b", 0, 1400, 1)}, 500},
		{5, []workflow.Progress{p("a", 0, 200, 2), p("b", 0, 1400, 1)}, 500}, // no news
		{8, []workflow.Progress{p("a", 1, 900, 8), p("b", 0, 1400, 1)}, 400}, // the next action began
		{12, []workflow.Progress{p("a", 1, 800, 9), p("b", 0, 1400, 1)}, 0},  // another attempt, and one that is silent
		{20, nil, 0},
	} {
		if got := tr.rate(tc.running, at.Add(time.Duration(tc.s)*time.Second)); got.BytesPerSecond != tc.want || tc.s != 1 && got.Writing != len(tc.running) {
			t.Errorf("at %d: %+v, want %d", tc.s, got, tc.want)
		}
	}
}
