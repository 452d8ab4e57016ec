package workergrpc_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// ends waits for the end of the stream, past messages, and checks its status.
func (w *worker) ends(code codes.Code, words string) {
	w.t.Helper()
	for {
		_, err := w.s.Recv()
		if err == nil {
			continue
		}
		if s := status.Convert(err); s.Code() != code || !strings.Contains(s.Message(), words) {
			w.t.Errorf("the stream ended with %v, want %v: … %s", err, code, words)
		}
		return
	}
}

// acked waits for the Ack of a message, and returns what came before it.
func (w *worker) acked(seq uint64) (before []*workerpb.Down) {
	w.t.Helper()
	for {
		m := w.recv()
		if a := m.GetAck(); a != nil {
			if a.GetSeq() != seq {
				w.t.Fatalf("acknowledged %d, want %d", a.GetSeq(), seq)
			}
			return before
		}
		before = append(before, m)
	}
}

// assigned waits for the next Assign.
func (w *worker) assigned() *workerpb.Assign {
	w.t.Helper()
	for {
		if a := w.recv().GetAssign(); a != nil {
			return a
		}
	}
}

func TestHelloRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.boot(1)
	for name, tc := range map[string]struct {
		protocol uint32
		token    string
		code     codes.Code
		words    string
	}{
		"no token":     {1, "", codes.Unauthenticated, "a token that is not ours"},
		"wrong token":  {1, "rs1.x.y.z", codes.Unauthenticated, "a token that is not ours"},
		"altered":      {1, token[:len(token)-1] + "!", codes.Unauthenticated, "a token that is not ours"},
		"long":         {1, strings.Repeat("x", 100_000), codes.Unauthenticated, "a token that is not ours"},
		"protocol 0":   {0, token, codes.FailedPrecondition, "reboot to load the worker of this appliance"},
		"protocol 99":  {99, token, codes.FailedPrecondition, "worker protocol 99 is not spoken here"},
		"protocol max": {1<<32 - 1, token, codes.FailedPrecondition, "is not spoken here"},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.hello(newKey(t), tc.protocol, tc.token)
			w.t = t
			w.ends(tc.code, tc.words)
		})
	}
	w := r.dial(newKey(t))
	w.facts(1, []byte("{}"))
	w.ends(codes.InvalidArgument, "the first message must be Hello")
	// None of them used the token up.
	r.welcomed(newKey(t), token)
}

// The token is bound to an ed25519 key that the TLS handshake proves; nothing else
// is let in, whatever token it brings.
func TestClientKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.boot(1)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	r.must(err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	r.must(err)
	for _, key := range []crypto.Signer{ec, rs} {
		r.hello(key, 1, token).ends(codes.Unauthenticated, "must have an ed25519 key")
	}
	for name, tc := range map[string]struct {
		config *tls.Config
		words  string
	}{
		"no certificate": {clientTLS(nil), "certificate required"},
		"TLS 1.2":        {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}, "protocol version"},
	} {
		err := func() error {
			c, err := tls.Dial("tcp", r.addr, tc.config)
			if err != nil {
				return err
			}
			defer c.Close()
			r.must(c.SetDeadline(time.Now().Add(patience)))
			// In TLS 1.3 the server judges the client after the client's handshake is done.
			for b := make([]byte, 4096); ; {
				if _, err := c.Read(b); err != nil {
					return err
				}
			}
		}()
		if err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: %v, want %q", name, err, tc.words)
		}
	}
	first := r.welcomed(newKey(t), token)
	// A second key: somebody else has seen the token.
	r.hello(newKey(t), 1, token).ends(codes.Unauthenticated, "on hold")
	if h := r.machine(); !h.Status.Hold || h.Status.HoldReason != hardware.ReasonTokenStolen {
		t.Errorf("after a second key: %+v", h.Status)
	}
	r.must(first.s.CloseSend())
}

func TestFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token, key := r.boot(1), newKey(t)
	w := r.welcomed(key, token)
	w.facts(7, []byte(`{"vendor":"QEMU\u001b[2J","cpus":4,"disks":[{"path":"/dev/vda","bytes":1}],"future":{"a":1}}`))
	w.acked(7)
	if f := r.machine().Facts; f == nil || f.Vendor != "QEMU [2J" || f.CPUs != 4 || len(f.Disks) != 1 {
		t.Errorf("kept: %+v", f)
	}
	for name, tc := range map[string]struct {
		text  []byte
		code  codes.Code
		words string
	}{
		"too large":      {bytes.Repeat([]byte(" "), 256<<10+1), codes.InvalidArgument, "facts have 262145 bytes, the limit is 262144"},
		"beyond gRPC":    {bytes.Repeat([]byte(" "), 600<<10), codes.ResourceExhausted, ""},
		"not JSON":       {[]byte("QEMU"), codes.InvalidArgument, "facts: "},
		"of other types": {[]byte(`{"cpus":"many"}`), codes.InvalidArgument, "facts: "},
		"deep":           {bytes.Repeat([]byte(`{"a":`), 40_000), codes.InvalidArgument, "facts: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.welcomed(key, token)
			w.t = t
			w.facts(1, tc.text)
			w.ends(tc.code, tc.words)
		})
	}
	if f := r.machine().Facts; f == nil || f.CPUs != 4 {
		t.Errorf("after bad ones: %+v", f)
	}
}

// TestReports: what is acknowledged is on disk; a repeat is acknowledged and
// changes nothing.
func TestReports(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.welcomed(newKey(t), r.boot(1))
	wipe := w.assigned()
	if wipe.GetName() != "wipe" || wipe.GetKind() != string(workflow.KindDiskWipe) || wipe.GetActions() != 2 || wipe.GetWorkflowName() != "w1" {
		t.Errorf("assigned %v", wipe)
	}
	state := func() workflow.Status {
		t.Helper()
		got, err := r.db.Workflow(r.ctx, "w1")
		r.must(err)
		return got.Status
	}
	w.send(&workerpb.Up{Body: &workerpb.Up_Progress{Progress: &workerpb.Progress{Assignment: wipe.GetAssignment(), Done: 5, Total: 10, Note: "half\x1b"}}})
	w.send(&workerpb.Up{Body: &workerpb.Up_Log{Log: &workerpb.Log{Assignment: wipe.GetAssignment(), Text: []byte("line\n")}}})
	w.report(1, wipe.GetAssignment(), workerpb.Outcome_OUTCOME_SUCCEEDED)
	before := w.acked(1)
	if s := state(); s.Actions[0].State != workflow.StateSucceeded {
		t.Errorf("acknowledged, and the store says %+v", s.Actions[0])
	}
	want := workflow.Assignment{Workflow: wipe.GetAssignment().GetWorkflow()}
	r.logs.mu.Lock()
	if string(r.logs.text[want]) != "line\n" {
		t.Errorf("logs: %v", r.logs.text)
	}
	r.logs.mu.Unlock()

	var restart *workerpb.Assign
	for _, m := range before {
		restart = m.GetAssign()
	}
	if restart == nil {
		restart = w.assigned()
	}
	if restart.GetName() != "restart" || restart.GetAssignment().GetAction() != 1 {
		t.Errorf("assigned %v", restart)
	}
	once := fmt.Sprint(state())
	w.report(2, wipe.GetAssignment(), workerpb.Outcome_OUTCOME_FAILED)
	w.report(3, &workerpb.Assignment{Workflow: "01JD0000000000000000000000", Action: 1 << 31, Attempt: 1<<32 - 1}, workerpb.Outcome_OUTCOME_FAILED)
	w.report(4, nil, workerpb.Outcome_OUTCOME_UNSPECIFIED)
	for seq := range uint64(3) {
		w.acked(seq + 2)
	}
	if again := fmt.Sprint(state()); again != once {
		t.Errorf("repeated and foreign reports changed\n%s\nto\n%s", once, again)
	}
	w.report(5, restart.GetAssignment(), workerpb.Outcome_OUTCOME_SUCCEEDED)
	before = w.acked(5)
	var finish *workerpb.Finish
	for _, m := range before {
		finish = m.GetFinish()
	}
	for finish == nil {
		finish = w.recv().GetFinish()
	}
	if finish.GetWhat() != workerpb.Finish_WHAT_REBOOT {
		t.Errorf("at the end: %v", finish)
	}
	if s := state(); s.State != workflow.StateSucceeded {
		t.Errorf("workflow %s", s.State)
	}
}

// What makes no sense ends the stream or is passed over; the server goes on.
func TestOddMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token, key := r.boot(1), newKey(t)
	w := r.welcomed(key, token)
	w.send(&workerpb.Up{Body: &workerpb.Up_Log{Log: &workerpb.Log{Text: []byte("of nothing")}}})
	w.send(&workerpb.Up{Body: &workerpb.Up_Log{Log: &workerpb.Log{Assignment: &workerpb.Assignment{}, Text: []byte("of nothing")}}})
	w.send(&workerpb.Up{Body: &workerpb.Up_Log{}})
	w.send(&workerpb.Up{Body: &workerpb.Up_Progress{}})
	w.send(&workerpb.Up{Body: &workerpb.Up_Progress{Progress: &workerpb.Progress{Assignment: &workerpb.Assignment{Action: 1<<32 - 1}, Done: -1, Note: strings.Repeat("x", 100_000)}}})
	w.facts(1, []byte("{}"))
	w.acked(1)
	if p, _ := r.engine.Progress("w1"); len(p.Note) > 128 {
		t.Errorf("a note of %d bytes is kept", len(p.Note))
	}
	w.send(&workerpb.Up{Seq: 2})
	w.ends(codes.InvalidArgument, "unexpected message")
	w = r.welcomed(key, token)
	w.send(&workerpb.Up{Body: &workerpb.Up_Hello{Hello: &workerpb.Hello{Protocol: 1, Token: token}}})
	w.ends(codes.InvalidArgument, "unexpected message")
}

// The worker that comes again is the machine's one session; it goes on with what
// it says it is busy with.
func TestSecondStreamTakesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token, key := r.boot(1), newKey(t)
	first := r.welcomed(key, token)
	a := first.assigned()
	second := r.dial(key)
	second.send(&workerpb.Up{Body: &workerpb.Up_Hello{Hello: &workerpb.Hello{Protocol: 1, Token: token, Running: a.GetAssignment()}}})
	if second.recv().GetWelcome() == nil {
		t.Fatal("not welcomed again")
	}
	first.ends(codes.Aborted, "took over")
	second.report(1, a.GetAssignment(), workerpb.Outcome_OUTCOME_SUCCEEDED)
	for _, m := range second.acked(1) {
		if m.GetAssign().GetName() == "wipe" {
			t.Error("the running action was assigned again")
		}
	}
	// The machine is powered on anew: the worker of the boot before is not let in.
	r.boot(2)
	r.hello(key, 1, token).ends(codes.Unauthenticated, "an earlier boot")
}

// An enrolment token lets facts in, and nothing that moves a workflow.
func TestEnrolCannotReport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token, key := r.boot(1), newKey(t)
	mc, err := r.db.Machine(r.ctx, r.hw.Meta.UID)
	r.must(err)
	mc.Boot.Next.Scope = hardware.ScopeEnrol
	r.must(r.db.Commit(r.ctx, &workflow.Change{Machine: mc}))
	got, err := r.db.Workflow(r.ctx, "w1")
	r.must(err)
	own := &workerpb.Assignment{Workflow: got.Meta.UID}

	w := r.welcomed(key, token)
	w.send(&workerpb.Up{Body: &workerpb.Up_Log{Log: &workerpb.Log{Assignment: own, Text: []byte("x")}}})
	w.ends(codes.PermissionDenied, "and nothing else")
	w = r.welcomed(key, token)
	w.send(&workerpb.Up{Body: &workerpb.Up_Progress{Progress: &workerpb.Progress{Assignment: own, Done: 1}}})
	w.ends(codes.PermissionDenied, "and nothing else")
	w = r.welcomed(key, token)
	w.facts(1, []byte(`{"vendor":"QEMU"}`))
	w.acked(1)
	if h := r.machine(); h.Facts == nil || h.Facts.Vendor != "QEMU" {
		t.Errorf("facts: %+v", h.Facts)
	}
	if p, ok := r.engine.Progress("w1"); ok || len(r.logs.text) != 0 {
		t.Errorf("progress %+v, logs %v", p, r.logs.text)
	}
	w.report(2, own, workerpb.Outcome_OUTCOME_SUCCEEDED)
	w.ends(codes.PermissionDenied, "and nothing else")
	after, err := r.db.Workflow(r.ctx, "w1")
	r.must(err)
	if after.Status.Actions[0].State == workflow.StateSucceeded {
		t.Error("the report was applied")
	}
}

// TestServeEnds: the server stops with its context, without an error, and says so
// to its workers.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.welcomed(newKey(t), r.boot(1))
	if err := r.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	w.ends(codes.Unavailable, "")
}
