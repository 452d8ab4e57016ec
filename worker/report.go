package worker

import (
	"errors"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
)

// Limits on text that goes to the appliance, in bytes.
const (
	maxMessage = 4 << 10
	maxNote    = 256
)

// report says how an attempt ended. cause is why its context was ended, nil where
// it was not. An action that succeeded although it was told to stop has succeeded.
func report(a *workerpb.Assign, res action.Result, err, cause error) *workerpb.Report {
	r := &workerpb.Report{
		Assignment: a.GetAssignment(), Outcome: workerpb.Outcome_OUTCOME_SUCCEEDED, Message: res.Message,
		SourceBytes: res.SourceBytes, WrittenBytes: res.WrittenBytes, Disk: res.Disk, Checksum: res.Checksum, Compared: res.Compared,
	}
	if err == nil {
		for _, d := range res.Wiped {
			r.Wiped = append(r.Wiped, &workerpb.WipedDisk{Path: d.Path, Serial: hardware.FactText(d.Serial), Bytes: d.Bytes, Method: d.Method, Verified: d.Verified})
		}
	}
	if err != nil {
		var unknown unknownKindError
		r.Outcome, r.Message = workerpb.Outcome_OUTCOME_FAILED, err.Error()
		r.Permanent = action.IsPermanent(err) || errors.As(err, &unknown)
		r.Untouched = action.Untouched(err) || errors.As(err, &unknown)
		switch {
		case errors.Is(cause, errTimeout):
			r.Outcome, r.Permanent = workerpb.Outcome_OUTCOME_TIMED_OUT, false
			r.Message = "ran out of time: " + err.Error()
		case errors.Is(cause, errCancelled), errors.Is(cause, errReplaced):
			r.Outcome, r.Permanent = workerpb.Outcome_OUTCOME_CANCELLED, false
			r.Message = cause.Error()
		}
	}
	r.Message = hardware.PlainText(r.GetMessage(), maxMessage)
	return r
}

// endText is a report in words, for the console.
func endText(r *workerpb.Report) string {
	word := map[workerpb.Outcome]string{
		workerpb.Outcome_OUTCOME_SUCCEEDED: "done",
		workerpb.Outcome_OUTCOME_FAILED:    "failed",
		workerpb.Outcome_OUTCOME_CANCELLED: "cancelled",
		workerpb.Outcome_OUTCOME_TIMED_OUT: "timed out",
	}[r.GetOutcome()]
	if r.GetMessage() != "" {
		word += ": " + r.GetMessage()
	}
	return word
}
