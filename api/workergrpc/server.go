// Package workergrpc serves the worker protocol (api/workerpb): it authenticates
// workers by their boot token and key, and carries messages between them and the
// workflow engine. It decides nothing.
package workergrpc

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Limits on what a worker can send.
const (
	maxMessage = 512 << 10 // bytes of one message
	maxFacts   = 256 << 10
	maxLog     = 64 << 10
	// helloLimit is how long a stream may be open without a Hello.
	helloLimit = 20 * time.Second
)

// Engine is what the server needs of workflow.Engine.
type Engine interface {
	Redeem(ctx context.Context, token string, key ed25519.PublicKey, from netip.Addr) (workflow.Admission, error)
	Attach(ctx context.Context, a workflow.Admission, running *workflow.Assignment) (*workflow.Session, error)
	TooOld(ctx context.Context, token string, from netip.Addr)
}

var _ Engine = (*workflow.Engine)(nil)

// Server is the worker protocol's server.
type Server struct {
	workerpb.UnimplementedWorkerServer
	engine Engine
	now    func() time.Time
	log    *slog.Logger
	grpc   *grpc.Server
	// protocol is [Protocol], except in tests of what a later version takes.
	protocol uint32
}

// New makes a server with the given certificate chain (leaf and installation CA).
// Clients must show a certificate of their own making: it is not judged, only its
// key is, because the boot token is bound to it.
func New(e Engine, cert tls.Certificate, now func() time.Time, log *slog.Logger) *Server {
	s := &Server{engine: e, now: now, log: log, protocol: Protocol}
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{cert},
			ClientAuth:   tls.RequireAnyClientCert,
			NextProtos:   []string{"h2"},
		})),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.StreamInterceptor(s.survive),
		grpc.MaxConcurrentStreams(4),
		grpc.ConnectionTimeout(20*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		// one small stream per machine: thousands of them must stay cheap
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
	)
	workerpb.RegisterWorkerServer(s.grpc, s)
	return s
}

// Serve answers on l until ctx ends; it returns nil then.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	if err := s.grpc.Serve(l); err != nil && ctx.Err() == nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// survive turns a panic over one worker's messages into the end of that worker's
// stream: it must not take DHCP and everybody else's install down.
func (s *Server) survive(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("worker stream panicked", "panic", r, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the appliance failed on this message")
		}
	}()
	return handler(srv, stream)
}

// Session carries one worker.
func (s *Server) Session(stream workerpb.Worker_SessionServer) error {
	ctx := stream.Context()
	adm, hello, err := s.admit(stream)
	if err != nil {
		return err
	}
	err = stream.Send(&workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{
		Protocol: s.protocol, Scope: string(adm.Scope), Machine: adm.Machine, Boot: adm.Boot, UnixMs: s.now().UnixMilli(),
	}}})
	if err != nil {
		return err
	}
	sess, err := s.engine.Attach(ctx, adm, fromAssignment(hello.GetRunning()))
	if err != nil {
		s.log.Error("worker not attached", "machine", adm.Machine, "err", err)
		return status.Error(codes.Unavailable, "the appliance cannot write its store; try again")
	}
	defer sess.Detach()
	up := make(chan *workerpb.Up)
	recvErr := make(chan error, 1)
	go receive(ctx, stream, up, recvErr)
	for {
		select {
		case <-sess.Wake():
			if done, err := deliver(stream, sess.Take()); done || err != nil {
				return err
			}
		case m := <-up:
			if err := s.handle(ctx, stream, sess, adm, m); err != nil {
				return err
			}
		case err := <-recvErr:
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// receive moves messages from the stream to up until either ends; the stream ends
// when Session returns, so the goroutine does not outlive it.
func receive(ctx context.Context, stream workerpb.Worker_SessionServer, up chan<- *workerpb.Up, done chan<- error) {
	for {
		m, err := stream.Recv()
		if err != nil {
			done <- err
			return
		}
		select {
		case up <- m:
		case <-ctx.Done():
			return
		}
	}
}

// admit reads Hello and redeems its token.
func (s *Server) admit(stream workerpb.Worker_SessionServer) (workflow.Admission, *workerpb.Hello, error) {
	var none workflow.Admission
	m, err := first(stream)
	if err != nil {
		return none, nil, err
	}
	hello := m.GetHello()
	if hello == nil {
		return none, nil, status.Error(codes.InvalidArgument, "the first message must be Hello")
	}
	key, from, err := caller(stream.Context())
	if err != nil {
		return none, nil, err
	}
	if !accepted(hello.GetProtocol(), s.protocol) {
		s.engine.TooOld(stream.Context(), hello.GetToken(), from)
		return none, nil, status.Errorf(codes.FailedPrecondition, "worker protocol %d is not spoken here (%d to %d): reboot to load the worker of this appliance", hello.GetProtocol(), max(s.protocol-1, 1), s.protocol)
	}
	adm, err := s.engine.Redeem(stream.Context(), hello.GetToken(), key, from)
	var refused *workflow.Refused
	switch {
	case errors.As(err, &refused):
		s.log.Warn("worker refused", "reason", refused.Reason, "client", from)
		return none, nil, status.Error(codes.Unauthenticated, refused.Error())
	case err != nil:
		s.log.Error("worker not admitted", "client", from, "err", err)
		return none, nil, status.Error(codes.Unavailable, "the appliance cannot read or write its store; try again")
	}
	return adm, hello, nil
}

// first is the first message of a stream; a stranger must not hold one open
// without it.
func first(stream workerpb.Worker_SessionServer) (*workerpb.Up, error) {
	type received struct {
		m   *workerpb.Up
		err error
	}
	got := make(chan received, 1)
	go func() { // ends with the stream, which ends when Session returns
		m, err := stream.Recv()
		got <- received{m, err}
	}()
	late := time.NewTimer(helloLimit)
	defer late.Stop()
	select {
	case r := <-got:
		return r.m, r.err
	case <-late.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no Hello within %v", helloLimit)
	}
}

// caller is the key of the client's certificate, proven by the TLS handshake, and
// its address.
func caller(ctx context.Context) (ed25519.PublicKey, netip.Addr, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, netip.Addr{}, status.Error(codes.Unauthenticated, "no peer")
	}
	t, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(t.State.PeerCertificates) == 0 {
		return nil, netip.Addr{}, status.Error(codes.Unauthenticated, "a client certificate is needed")
	}
	key, ok := t.State.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, netip.Addr{}, status.Error(codes.Unauthenticated, "the client certificate must have an ed25519 key")
	}
	from, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return key, netip.Addr{}, nil
	}
	return key, from.Addr().Unmap(), nil
}

// handle applies one message of the worker.
func (s *Server) handle(ctx context.Context, stream workerpb.Worker_SessionServer, sess *workflow.Session, adm workflow.Admission, m *workerpb.Up) error {
	work := adm.Scope == hardware.ScopeWork
	if _, facts := m.GetBody().(*workerpb.Up_Facts); adm.Scope == hardware.ScopeEnrol && !facts {
		return status.Error(codes.PermissionDenied, "this boot's token allows to report what is in the machine, and nothing else")
	}
	var err error
	switch b := m.GetBody().(type) {
	case *workerpb.Up_Facts:
		if len(b.Facts.GetJson()) > maxFacts {
			return status.Errorf(codes.InvalidArgument, "facts have %d bytes, the limit is %d", len(b.Facts.GetJson()), maxFacts)
		}
		var f hardware.Facts
		if err := json.Unmarshal(b.Facts.GetJson(), &f); err != nil {
			return status.Errorf(codes.InvalidArgument, "facts: %v", err)
		}
		err = sess.Facts(ctx, &f)
	case *workerpb.Up_Report:
		if !work {
			return status.Error(codes.PermissionDenied, "this boot's token does not allow actions")
		}
		err = sess.Report(ctx, fromReport(b.Report))
	case *workerpb.Up_Progress:
		if work {
			sess.Progress(fromProgress(b.Progress))
		}
		return nil
	case *workerpb.Up_Log:
		if a := fromAssignment(b.Log.GetAssignment()); work && a != nil {
			sess.Log(*a, b.Log.GetText()[:min(len(b.Log.GetText()), maxLog)])
		}
		return nil
	default:
		return status.Error(codes.InvalidArgument, "unexpected message")
	}
	var later *workflow.Later
	if errors.As(err, &later) {
		s.log.Debug("facts not taken", "machine", adm.Machine, "reason", later.Reason, "detail", later.Detail)
		return status.Error(codes.ResourceExhausted, later.Error())
	}
	if err != nil {
		// not acknowledged: the worker keeps the report and sends it again
		s.log.Error("worker report not written", "machine", adm.Machine, "err", err)
		return status.Error(codes.Unavailable, "the appliance cannot write its store; try again")
	}
	return stream.Send(&workerpb.Down{Body: &workerpb.Down_Ack{Ack: &workerpb.Ack{Seq: m.GetSeq()}}})
}
