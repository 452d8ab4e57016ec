package workflow

import "time"

// Install is an install that has ended, in short: what is told of thousands of them.
type Install struct {
	UID, Workflow string // of the workflow
	HardwareUID   string
	// Boot is the last in which one of its actions ran; empty where none did.
	Boot  string
	State State
	// Asked is when it was created, Finished when it ended.
	Asked, Finished time.Time
	// Written are the bytes that went to the disk, and Writing is how long that took.
	Written int64
	Writing time.Duration
}

// Install is the workflow in short; false where it installs nothing or has not ended.
func (w *Workflow) Install() (Install, bool) {
	st := &w.Status
	if !st.State.Ended() || !w.installs() {
		return Install{}, false
	}
	out := Install{UID: w.Meta.UID, Workflow: w.Meta.Name, HardwareUID: st.HardwareUID, State: st.State, Asked: w.Meta.Created, Finished: st.Finished}
	for _, a := range st.Actions {
		for _, t := range a.Attempts {
			out.Boot = t.Boot
			if a.Kind == KindImageWrite && t.State == StateSucceeded {
				out.Written += t.Result.WrittenBytes
				out.Writing += t.Finished.Sub(t.Started)
			}
		}
	}
	return out, true
}
