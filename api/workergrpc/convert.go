package workergrpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// deliver sends the engine's commands; done says that the stream is over.
func deliver(stream workerpb.Worker_SessionServer, cmds []workflow.Command) (done bool, err error) {
	for _, c := range cmds {
		if c.Close != "" {
			return true, status.Error(codes.Aborted, c.Close)
		}
		if err := stream.Send(toDown(c)); err != nil {
			return true, err
		}
	}
	return false, nil
}

func toDown(c workflow.Command) *workerpb.Down {
	switch {
	case c.Assign != nil:
		a := c.Assign
		return &workerpb.Down{Body: &workerpb.Down_Assign{Assign: &workerpb.Assign{
			Assignment: toAssignment(a.Assignment), Name: a.Name, Kind: string(a.Kind), Options: a.Options,
			TimeoutMs: a.Timeout.Milliseconds(), WorkflowName: a.WorkflowName, Actions: uint32(a.Actions),
		}}}
	case c.Cancel != nil:
		return &workerpb.Down{Body: &workerpb.Down_Cancel{Cancel: &workerpb.Cancel{Assignment: toAssignment(*c.Cancel)}}}
	default:
		what := map[workflow.FinishWhat]workerpb.Finish_What{
			workflow.FinishReboot:   workerpb.Finish_WHAT_REBOOT,
			workflow.FinishPowerOff: workerpb.Finish_WHAT_POWER_OFF,
			workflow.FinishWait:     workerpb.Finish_WHAT_WAIT,
		}[c.Finish.What]
		return &workerpb.Down{Body: &workerpb.Down_Finish{Finish: &workerpb.Finish{What: what, Reason: c.Finish.Reason}}}
	}
}

func toAssignment(a workflow.Assignment) *workerpb.Assignment {
	return &workerpb.Assignment{Workflow: a.Workflow, Action: uint32(a.Action), Attempt: uint32(a.Attempt)}
}

func fromAssignment(a *workerpb.Assignment) *workflow.Assignment {
	if a == nil || a.GetWorkflow() == "" {
		return nil
	}
	return &workflow.Assignment{Workflow: a.GetWorkflow(), Action: int(a.GetAction()), Attempt: int(a.GetAttempt())}
}

func fromReport(r *workerpb.Report) workflow.Report {
	out := workflow.Report{
		Outcome: map[workerpb.Outcome]workflow.Outcome{
			workerpb.Outcome_OUTCOME_SUCCEEDED: workflow.StateSucceeded,
			workerpb.Outcome_OUTCOME_CANCELLED: workflow.StateCancelled,
			workerpb.Outcome_OUTCOME_TIMED_OUT: workflow.StateTimedOut,
		}[r.GetOutcome()],
		Message: r.GetMessage(), Permanent: r.GetPermanent(), Untouched: r.GetUntouched(),
		Result: workflow.Result{
			SourceBytes: r.GetSourceBytes(), WrittenBytes: r.GetWrittenBytes(), Disk: r.GetDisk(), Checksum: r.GetChecksum(),
			Compared: r.GetCompared(),
			Wiped:    fromWiped(r.GetWiped()),
		},
	}
	if out.Outcome == "" {
		out.Outcome = workflow.StateFailed
	}
	if a := fromAssignment(r.GetAssignment()); a != nil {
		out.Assignment = *a
	}
	return out
}

// maxWiped bounds the disks of one report: twice what a large storage server has.
const maxWiped = 256

// fromWiped takes a proof over. One that nobody could have measured is none: a
// method that is not ours, or more bytes read than there are. Where one disk of a
// report has none, the report has none, so that a release does not pass over it.
func fromWiped(all []*workerpb.WipedDisk) []hardware.WipedDisk {
	if len(all) > maxWiped {
		return nil
	}
	var out []hardware.WipedDisk
	for _, d := range all {
		known := d.GetMethod() == hardware.WipedByDiscard || d.GetMethod() == hardware.WipedByOverwrite
		if !known || d.GetPath() == "" || d.GetVerified() <= 0 || d.GetVerified() > d.GetBytes() {
			return nil
		}
		out = append(out, hardware.WipedDisk{
			Path: hardware.FactText(d.GetPath()), Serial: hardware.FactText(d.GetSerial()),
			Bytes: d.GetBytes(), Method: d.GetMethod(), Verified: d.GetVerified(),
		})
	}
	return out
}

func fromProgress(p *workerpb.Progress) workflow.Progress {
	a := p.GetAssignment()
	return workflow.Progress{
		Action: int(a.GetAction()), Attempt: int(a.GetAttempt()),
		Done: p.GetDone(), Total: p.GetTotal(), Written: p.GetWritten(), Note: p.GetNote(),
	}
}
