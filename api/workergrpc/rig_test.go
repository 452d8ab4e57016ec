package workergrpc_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/rackstrap/rackstrap/api/workergrpc"
	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// patience bounds the waits for something that must happen.
const patience = 60 * time.Second

// rig is the server on a loopback address, over the real engine and store, with one
// machine that has a workflow of two actions.
type rig struct {
	t      *testing.T
	ctx    context.Context
	db     *store.DB
	engine *workflow.Engine
	hw     *hardware.Hardware
	addr   string
	logs   *keptLogs
	stop   func() error // ends the server, and says what Serve returned
}

// keptLogs is workflow.Logs in memory.
type keptLogs struct {
	mu   sync.Mutex
	text map[workflow.Assignment][]byte
}

func (l *keptLogs) Append(a workflow.Assignment, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text[a] = append(l.text[a], text...)
	return nil
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, workergrpc.Protocol)
}

// newRigOf is a rig whose server speaks that version of the protocol.
func newRigOf(t *testing.T, protocol uint32) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, logs: &keptLogs{text: map[workflow.Assignment][]byte{}}}
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
	r.must(err)
	t.Cleanup(func() { _ = kv.Close() })
	r.db, err = store.Open(ctx, kv, filepath.Join(dir, "seal.key"), store.Options{})
	r.must(err)
	r.hw = &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, 1}}}}}
	r.must(r.db.CreateHardware(ctx, r.hw))
	r.must(r.db.CreateTemplate(ctx, &workflow.Template{Meta: hardware.Meta{Name: "install"}, Spec: workflow.TemplateSpec{
		Actions: []workflow.ActionSpec{{Name: "wipe", Kind: workflow.KindDiskWipe}, {Name: "restart", Kind: workflow.KindReboot}},
	}}))
	r.engine = workflow.NewEngine(workflow.Config{
		Store: r.db, Templates: r.db.TemplateByName, HardwareByName: r.db.HardwareByName,
		Resolve: func(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
			return a.With, nil
		},
		Machines: r.db.View().Hardware, Subnets: r.db.View().Subnets, Alike: r.db.View().Alike,
		Logs: r.logs, Note: func(workflow.Event) {}, TokenKey: make([]byte, 32), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	r.run(r.engine.Run)
	<-r.engine.Ready()
	_, err = r.engine.CreateWorkflow(ctx, "w1", workflow.WorkflowSpec{Hardware: "m1", Template: "install"})
	r.must(err)

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	r.must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	r.must(err)
	r.addr = l.Addr().String()
	s := workergrpc.New(r.engine, *certificate(t, key), time.Now, slog.New(slog.DiscardHandler))
	s.Speak(protocol)
	r.stop = r.run(func(ctx context.Context) error { return s.Serve(ctx, l) })
	return r
}

// run runs f until the test ends or the returned function is called.
func (r *rig) run(f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	r.t.Cleanup(func() {
		if err := stop(); err != nil {
			r.t.Error(err)
		}
	})
	return stop
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// boot goes through DHCP to the token, as a machine does that is powered on.
func (r *rig) boot(xid uint32) string {
	r.t.Helper()
	client := netip.MustParseAddr("10.0.0.5")
	b, err := r.engine.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: r.hw.Meta.UID, MAC: r.hw.Spec.Interfaces[0].MAC, XID: xid, Firmware: hardware.FirmwareUEFI})
	r.must(err)
	r.must(r.engine.Acked(r.ctx, r.hw.Meta.UID, b.ID, client, netip.MustParseAddr("10.0.0.1"), false))
	g, err := r.engine.Script(r.ctx, r.hw.Meta.UID, client)
	r.must(err)
	if g.Token == "" {
		r.t.Fatalf("no token: %s", g.Reason)
	}
	return g.Token
}

func (r *rig) machine() *hardware.Hardware {
	r.t.Helper()
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	return h
}

// certificate is one signed by its own key; nil without a key.
func certificate(t *testing.T, key crypto.Signer) *tls.Certificate {
	t.Helper()
	if key == nil {
		return nil
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// clientTLS is a worker's, but for the pinned CA.
func clientTLS(cert *tls.Certificate) *tls.Config {
	c := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	if cert != nil {
		c.Certificates = []tls.Certificate{*cert}
	}
	return c
}

// worker is one stream to the server.
type worker struct {
	t *testing.T
	s workerpb.Worker_SessionClient
}

// dial opens a stream with a client certificate of that key.
func (r *rig) dial(key crypto.Signer) *worker {
	r.t.Helper()
	c, err := grpc.NewClient(r.addr, grpc.WithTransportCredentials(credentials.NewTLS(clientTLS(certificate(r.t, key)))))
	r.must(err)
	r.t.Cleanup(func() { _ = c.Close() })
	s, err := workerpb.NewWorkerClient(c).Session(r.ctx)
	r.must(err)
	return &worker{r.t, s}
}

// hello opens a stream and sends Hello.
func (r *rig) hello(key crypto.Signer, protocol uint32, token string) *worker {
	r.t.Helper()
	w := r.dial(key)
	w.send(&workerpb.Up{Body: &workerpb.Up_Hello{Hello: &workerpb.Hello{Protocol: protocol, Token: token}}})
	return w
}

// welcomed is a worker that was let in.
func (r *rig) welcomed(key crypto.Signer, token string) *worker {
	r.t.Helper()
	w := r.hello(key, workergrpc.Protocol, token)
	if hi := w.recv().GetWelcome(); hi == nil || hi.GetMachine() != "m1" || hi.GetProtocol() != workergrpc.Protocol || hi.GetUnixMs() == 0 {
		r.t.Fatalf("instead of Welcome: %v", hi)
	}
	return w
}

func (w *worker) send(m *workerpb.Up) {
	w.t.Helper()
	if err := w.s.Send(m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) recv() *workerpb.Down {
	w.t.Helper()
	m, err := w.s.Recv()
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *worker) facts(seq uint64, text []byte) {
	w.t.Helper()
	w.send(&workerpb.Up{Seq: seq, Body: &workerpb.Up_Facts{Facts: &workerpb.Facts{Json: text}}})
}

func (w *worker) report(seq uint64, a *workerpb.Assignment, o workerpb.Outcome) {
	w.t.Helper()
	w.send(&workerpb.Up{Seq: seq, Body: &workerpb.Up_Report{Report: &workerpb.Report{Assignment: a, Outcome: o}}})
}
