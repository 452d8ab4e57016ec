package hardware

import (
	"strings"
	"testing"
	"time"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		r     Reserve
		until time.Duration
		err   string
	}{
		{Reserve{For: "capi/web"}, time.Hour, ""},
		{Reserve{For: "capi/web", Within: Duration(24 * time.Hour)}, 24 * time.Hour, ""},
		{Reserve{For: "capi/web", Within: Duration(24*time.Hour + 1)}, 0, "reserve.within: is 24h0m0.000000001s, wanted up to 24h0m0s"},
		{Reserve{For: "capi/web", Within: -1}, 0, "reserve.within: is -1ns"},
		{Reserve{}, 0, "reserve.for: is empty"},
		{Reserve{For: "capi//web"}, 0, `reserve.for: "capi//web" begins`},
	} {
		err := tc.r.Validate()
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%+v: %v, wanted %q", tc.r, err, tc.err)
		}
		if tc.err == "" && !tc.r.From(now).Until.Equal(now.Add(tc.until)) {
			t.Errorf("%+v: until %v", tc.r, tc.r.From(now).Until)
		}
	}
}

// TestLeftover: what must not start, by what is known of the disks.
func TestLeftover(t *testing.T) {
	t.Parallel()
	gone := func(by StoppedBy) *Stopping { return &Stopping{Claim: "c", Stopped: &Stopped{By: by}} }
	dirty := []DiskRef{{Path: "/dev/sda"}}
	for name, tc := range map[string]struct {
		s    Status
		want bool
	}{
		"never given back":           {Status{State: StateProvisioned, Installed: true}, false},
		"in use":                     {Status{State: StateProvisioned, Claim: &ClaimRef{}, Stopping: gone(StoppedByWorker)}, false},
		"being stopped":              {Status{State: StateReleasing, Stopping: &Stopping{}}, true},
		"wiped":                      {Status{State: StateAvailable, Stopping: gone(StoppedByPowerOff)}, false},
		"written, nothing installed": {Status{State: StateAvailable, Dirty: dirty, Stopping: gone(StoppedByPowerOff)}, true},
		"wipe failed":                {Status{State: StateFailed, Dirty: dirty, Stopping: gone(StoppedByPowerOff)}, true},
		"adopted, wipe failed":       {Status{State: StateFailed, Stopping: gone(StoppedByPowerOff)}, true},
		"retired with its disks":     {Status{State: StateRetired, Dirty: dirty, Stopping: gone(StoppedByHold)}, true},
		"adopted and retired":        {Status{State: StateRetired, Stopping: gone(StoppedByHold)}, true},
		"retired clean":              {Status{State: StateRetired, Stopping: gone(StoppedNeverRan)}, false},
	} {
		if got := tc.s.Leftover(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
