package workergrpc_test

import (
	"reflect"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
)

// The appliance is upgraded while machines run the worker of before: that goes on,
// the one before that is told to load the new one.
func TestOlderWorkers(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, 3)
	token := r.boot(1)
	r.hello(newKey(t), 1, token).ends(codes.FailedPrecondition, "worker protocol 1 is not spoken here (2 to 3): reboot to load the worker of this appliance")
	r.hello(newKey(t), 4, token).ends(codes.FailedPrecondition, "worker protocol 4 is not spoken here")
	w := r.hello(newKey(t), 2, token)
	if hi := w.recv().GetWelcome(); hi.GetProtocol() != 3 || hi.GetMachine() != "m1" {
		t.Fatalf("instead of Welcome: %v", hi)
	}
	a := w.assigned()
	w.report(1, a.GetAssignment(), workerpb.Outcome_OUTCOME_SUCCEEDED)
	w.acked(1)
	got, err := r.db.Workflow(r.ctx, "w1")
	r.must(err)
	if s := got.Status.Actions[0].State; s != "succeeded" {
		t.Errorf("the action is %s", s)
	}
}

// Only a worker that says what it read back gives a proof. One from before the
// field, which took a verified wipe for a quick one, succeeds without.
func TestWipeProof(t *testing.T) {
	t.Parallel()
	good := &workerpb.WipedDisk{Path: "/dev/sda", Serial: "S1\x1b[2J", Bytes: 1000, Method: "discard", Verified: 900}
	for name, tc := range map[string]struct {
		wiped []*workerpb.WipedDisk
		want  []hardware.WipedDisk
	}{
		"older worker": {nil, nil},
		"proven": {[]*workerpb.WipedDisk{good, {Path: "/dev/sdb", Bytes: 5, Method: "overwrite", Verified: 5}}, []hardware.WipedDisk{
			{Path: "/dev/sda", Serial: "S1 [2J", Bytes: 1000, Method: "discard", Verified: 900},
			{Path: "/dev/sdb", Bytes: 5, Method: "overwrite", Verified: 5},
		}},
		"nothing read":       {[]*workerpb.WipedDisk{good, {Path: "/dev/sdb", Bytes: 5, Method: "overwrite"}}, nil},
		"more than there is": {[]*workerpb.WipedDisk{{Path: "/dev/sdb", Bytes: 5, Method: "overwrite", Verified: 6}}, nil},
		"another method":     {[]*workerpb.WipedDisk{{Path: "/dev/sdb", Bytes: 5, Method: "quick", Verified: 5}}, nil},
		"no path":            {[]*workerpb.WipedDisk{{Bytes: 5, Method: "overwrite", Verified: 5}}, nil},
		"too many":           {manyWiped(257, good), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			w := r.welcomed(newKey(t), r.boot(1))
			a := w.assigned()
			w.send(&workerpb.Up{Seq: 1, Body: &workerpb.Up_Report{Report: &workerpb.Report{
				Assignment: a.GetAssignment(), Outcome: workerpb.Outcome_OUTCOME_SUCCEEDED, Wiped: tc.wiped,
			}}})
			w.acked(1)
			got, err := r.db.Workflow(r.ctx, "w1")
			r.must(err)
			act := got.Status.Actions[0]
			if act.State != "succeeded" || !reflect.DeepEqual(act.Attempts[0].Result.Wiped, tc.want) {
				t.Errorf("%s with %+v, want %+v", act.State, act.Attempts[0].Result.Wiped, tc.want)
			}
		})
	}
}

func manyWiped(n int, d *workerpb.WipedDisk) []*workerpb.WipedDisk {
	var out []*workerpb.WipedDisk
	for range n {
		out = append(out, d)
	}
	return out
}
