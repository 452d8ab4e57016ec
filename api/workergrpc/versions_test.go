package workergrpc

import (
	"slices"
	"testing"

	"github.com/rackstrap/rackstrap/worker"
)

// The table ends with the version that both ends of this release speak.
func TestVersions(t *testing.T) {
	t.Parallel()
	for i, v := range versions() {
		if v.number != uint32(i+1) || v.added == "" {
			t.Errorf("version %d of the table is %+v", i+1, v)
		}
	}
	spoken := []int{Protocol, worker.Protocol}
	if n := len(versions()); !slices.Equal(spoken, []int{n, n}) {
		t.Errorf("the table ends with %d, the server and the worker speak %v", n, spoken)
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		worker, server uint32
		want           bool
	}{
		{0, 1, false},
		{1, 1, true},
		{2, 1, false},
		{1<<32 - 1, 1, false},
		{1, 2, true},
		{2, 2, true},
		{0, 2, false},
		{1, 3, false},
		{2, 3, true},
		{3, 3, true},
		{4, 3, false},
	} {
		if got := accepted(tt.worker, tt.server); got != tt.want {
			t.Errorf("a worker of %d is accepted by a server of %d: %v", tt.worker, tt.server, got)
		}
	}
}
