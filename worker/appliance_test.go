package worker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/rackstrap/rackstrap/api/workerpb"
)

// authority is an installation's CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, isCA bool) authority {
	t.Helper()
	return authority{}.issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "installation"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// issue makes a certificate signed by a, or by itself where a is zero.
func (a authority) issue(t testing.TB, tmpl *x509.Certificate) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func (a authority) leaf(t testing.TB) authority {
	t.Helper()
	return a.issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "appliance"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (a authority) pin() [32]byte { return sha256.Sum256(a.cert.Raw) }

func chain(leaf authority, more ...authority) tls.Certificate {
	c := tls.Certificate{Certificate: [][]byte{leaf.cert.Raw}, PrivateKey: leaf.key}
	for _, m := range more {
		c.Certificate = append(c.Certificate, m.cert.Raw)
	}
	return c
}

// appliance is a worker protocol server whose answers a test writes.
type appliance struct {
	workerpb.UnimplementedWorkerServer
	addr  netip.AddrPort
	cert  tls.Certificate
	links chan *link
	grpc  *grpc.Server
}

// link is one connected worker.
type link struct {
	hello *workerpb.Hello
	up    chan *workerpb.Up
	down  chan *workerpb.Down
	end   chan error
}

func startAppliance(t testing.TB, cert tls.Certificate) *appliance {
	t.Helper()
	a := &appliance{cert: cert, links: make(chan *link, 16)}
	a.start(t, "127.0.0.1:0")
	t.Cleanup(func() { a.grpc.Stop() })
	return a
}

func (a *appliance) start(t testing.TB, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	a.addr = l.Addr().(*net.TCPAddr).AddrPort()
	a.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{a.cert}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2"},
		})),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))
	workerpb.RegisterWorkerServer(a.grpc, a)
	go func() { _ = a.grpc.Serve(l) }()
}

// restart is a daemon that was killed and started again.
func (a *appliance) restart(t testing.TB) {
	t.Helper()
	a.grpc.Stop()
	a.start(t, a.addr.String())
}

func (a *appliance) Session(s workerpb.Worker_SessionServer) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	k := &link{hello: first.GetHello(), up: make(chan *workerpb.Up, 1024), down: make(chan *workerpb.Down), end: make(chan error, 1)}
	a.links <- k
	go func() {
		for {
			m, err := s.Recv()
			if err != nil {
				close(k.up)
				return
			}
			k.up <- m
		}
	}()
	for {
		select {
		case m := <-k.down:
			if err := s.Send(m); err != nil {
				return err
			}
		case err := <-k.end:
			return err
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

const testLimit = 20 * time.Second

// accept waits for the next worker.
func (a *appliance) accept(t testing.TB) *link {
	t.Helper()
	select {
	case k := <-a.links:
		return k
	case <-time.After(testLimit):
		t.Fatal("no worker has connected")
		return nil
	}
}

// welcome lets the next worker in.
func (a *appliance) welcome(t testing.TB) *link {
	t.Helper()
	k := a.accept(t)
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{
		Protocol: 1, Scope: "work", Machine: "m1", Boot: "01BOOT", UnixMs: time.Now().UnixMilli(),
	}}})
	return k
}

func (k *link) send(t testing.TB, m *workerpb.Down) {
	t.Helper()
	select {
	case k.down <- m:
	case <-time.After(testLimit):
		t.Fatal("the worker does not take messages")
	}
}

func (k *link) assign(t testing.TB, kind string, action, attempt uint32, timeout time.Duration) *workerpb.Assignment {
	t.Helper()
	a := &workerpb.Assignment{Workflow: "W", Action: action, Attempt: attempt}
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Assign{Assign: &workerpb.Assign{
		Assignment: a, Name: "step", Kind: kind, Options: []byte(`{"secret":"hunter2"}`), TimeoutMs: timeout.Milliseconds(), Actions: 3,
	}}})
	return a
}

func (k *link) ack(t testing.TB, seq uint64) {
	t.Helper()
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Ack{Ack: &workerpb.Ack{Seq: seq}}})
}

// next waits for a message that want accepts, and skips others.
func (k *link) next(t testing.TB, what string, want func(*workerpb.Up) bool) *workerpb.Up {
	t.Helper()
	limit := time.After(testLimit)
	for {
		select {
		case m, ok := <-k.up:
			if !ok {
				t.Fatalf("the worker went away before %s", what)
			}
			if want(m) {
				return m
			}
		case <-limit:
			t.Fatalf("no %s came", what)
		}
	}
}

func (k *link) report(t testing.TB) *workerpb.Up {
	t.Helper()
	return k.next(t, "report", func(m *workerpb.Up) bool { return m.GetReport() != nil })
}
