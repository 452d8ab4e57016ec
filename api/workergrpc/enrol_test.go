package workergrpc_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/rackstrap/rackstrap/api/workergrpc"
	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// stranger goes through DHCP to the token, as a machine does that has no record.
func (r *rig) stranger(mac hardware.MAC) string {
	r.t.Helper()
	client, uid := netip.MustParseAddr("10.0.0.77"), hardware.StrangerUID(mac)
	b, err := r.engine.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: uid, MAC: mac, XID: 1, Firmware: hardware.FirmwareUEFI, Subnet: "lan", Discovery: true})
	r.must(err)
	r.must(r.engine.Acked(r.ctx, uid, b.ID, client, netip.MustParseAddr("10.0.0.1"), false))
	g, err := r.engine.Script(r.ctx, uid, client)
	r.must(err)
	return g.Token
}

// TestEnrol: over TLS, a machine without a record says what is in it and nothing else.
func TestEnrol(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.db.CreateSubnet(r.ctx, &hardware.Subnet{
		Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.0.0.0/24"), Mode: hardware.ModeProxy, Discovery: true},
	}))
	mac := hardware.MAC{2, 0, 0, 0, 0, 9}
	token, key := r.stranger(mac), newKey(t)
	enrol := func() *worker {
		t.Helper()
		w := r.hello(key, workergrpc.Protocol, token)
		if hi := w.recv().GetWelcome(); hi.GetScope() != string(hardware.ScopeEnrol) {
			t.Fatalf("instead of Welcome: %v", hi)
		}
		if f := w.recv().GetFinish(); f.GetWhat() != workerpb.Finish_WHAT_WAIT {
			t.Fatalf("instead of wait: %v", f)
		}
		return w
	}
	refused := map[string]*workerpb.Up{
		"report":   {Seq: 1, Body: &workerpb.Up_Report{Report: &workerpb.Report{Outcome: workerpb.Outcome_OUTCOME_SUCCEEDED}}},
		"progress": {Body: &workerpb.Up_Progress{Progress: &workerpb.Progress{Done: 1}}},
		"log":      {Body: &workerpb.Up_Log{Log: &workerpb.Log{Assignment: &workerpb.Assignment{Workflow: "x"}, Text: []byte("x")}}},
		"hello":    {Body: &workerpb.Up_Hello{Hello: &workerpb.Hello{Protocol: 1, Token: token}}},
		"nothing":  {Seq: 1},
	}
	refuse := func() {
		t.Helper()
		for name, m := range refused {
			w := enrol()
			w.send(m)
			w.ends(codes.PermissionDenied, "allows to report what is in the machine")
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
	refuse()
	w := enrol()
	w.facts(1, bytes.Repeat([]byte(" "), 10<<20))
	w.ends(codes.ResourceExhausted, "")
	w = enrol()
	w.facts(1, []byte(`{"nics":[`+strings.Repeat(`{},`, 80_000)+`{}]}`))
	w.acked(1) // a quarter of a million bytes: 64 NICs are taken, none of them a MAC
	w.ends(codes.Aborted, "has the record discovered-02-00-00-00-00-09 now")
	h, err := r.db.HardwareByName(r.ctx, "discovered-02-00-00-00-00-09")
	r.must(err)
	if h.Status.State != hardware.StatePending || len(h.Facts.NICs) != 64 || len(h.Spec.Interfaces) != 1 {
		t.Errorf("%s, %d NICs, %v", h.Status.State, len(h.Facts.NICs), h.Spec.Interfaces)
	}
	refuse() // the machine has a record and is pending: no more than before
	w = enrol()
	f, err := json.Marshal(hardware.Facts{Vendor: "ACME", NICs: []hardware.NICFact{{MAC: mac}}})
	r.must(err)
	for seq := range uint64(4) {
		w.facts(seq+2, f)
		w.acked(seq + 2)
	}
	w.facts(6, f)
	w.ends(codes.ResourceExhausted, "once in 1m0s is enough")
	w = enrol()
	r.must(r.engine.Accept(r.ctx, h.Meta.UID, ""))
	if f := w.recv().GetFinish(); f.GetWhat() != workerpb.Finish_WHAT_REBOOT {
		t.Errorf("accepted, and told %v", f)
	}
	_, err = r.engine.CreateWorkflow(r.ctx, "w2", workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: "install"})
	r.must(err)
	if f := w.recv().GetFinish(); f.GetWhat() != workerpb.Finish_WHAT_REBOOT {
		t.Errorf("with a workflow it is told %v", f)
	}
}
