package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
)

// Times of one connection.
const (
	welcomeLimit  = 30 * time.Second
	pingEvery     = 20 * time.Second
	pingLimit     = 20 * time.Second
	connectLimit  = 15 * time.Second
	progressEvery = 250 * time.Millisecond
)

// once makes one connection and serves it to its end. welcomed says that the
// appliance let the worker in; the error is a gRPC status where it came from there.
// What it starts on the machine lives as long as life, not as the connection.
func (s *Session) once(life context.Context) (welcomed bool, err error) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(s.trust.Config())),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectLimit}),
		// An appliance that lost its power sends nothing: without pings the worker
		// would believe in the connection for hours.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingLimit, PermitWithoutStream: true}),
	}
	if s.c.Dial != nil {
		options = append(options, grpc.WithContextDialer(s.c.Dial))
	}
	cc, err := grpc.NewClient("passthrough:///"+s.c.Server.String(), options...)
	if err != nil {
		return false, fmt.Errorf("server %v: %w", s.c.Server, err)
	}
	defer cc.Close()
	stream, err := workerpb.NewWorkerClient(cc).Session(ctx)
	if err != nil {
		return false, err
	}
	if err := s.hello(cancel, stream); err != nil {
		return false, err
	}
	s.facts.Do(func() { s.wg.Go(func() { s.collect(life) }) })

	var sender sync.WaitGroup
	sender.Go(func() {
		// A failed send shows itself in Recv, with the reason.
		_ = s.send(ctx, stream)
	})
	defer sender.Wait()
	defer cancel()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		s.handle(life, m)
	}
}

// hello says who we are and waits for Welcome.
func (s *Session) hello(cancel context.CancelFunc, stream workerpb.Worker_SessionClient) error {
	limit := time.AfterFunc(welcomeLimit, cancel)
	defer limit.Stop()
	// A send that fails gives io.EOF; the reason is what Recv says.
	err := stream.Send(&workerpb.Up{Body: &workerpb.Up_Hello{Hello: &workerpb.Hello{
		Protocol: Protocol, Token: s.c.Token, WorkerVersion: s.c.Version,
		Running: s.jobs.Running(), KernelMs: s.c.Uptime().Milliseconds(),
	}}})
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	m, err := stream.Recv()
	switch {
	case err != nil && !limit.Stop() && stream.Context().Err() != nil:
		return fmt.Errorf("the appliance did not answer within %v", welcomeLimit)
	case err != nil:
		return err
	}
	w := m.GetWelcome()
	if w == nil {
		return errors.New("the appliance's first answer is no Welcome")
	}
	s.welcome(w)
	return nil
}

// welcome sets the clock and shows who we are.
func (s *Session) welcome(w *workerpb.Welcome) {
	if t := time.UnixMilli(w.GetUnixMs()); w.GetUnixMs() > 0 {
		if err := s.c.SetClock(t); err != nil {
			s.c.Say("the clock could not be set to %s: %v", t.UTC().Format(time.DateTime), err)
		} else {
			s.trust.ClockSet(time.Now)
		}
	}
	s.enrol.Store(w.GetScope() == string(hardware.ScopeEnrol))
	s.c.Say("this machine is %s; connected to the appliance at %v (boot %s)",
		hardware.PlainText(w.GetMachine(), 64), s.c.Server, hardware.PlainText(w.GetBoot(), 64))
}

// send tells the appliance what is in the outbox until ctx is done: on each
// connection all that is not acknowledged, then what is new.
func (s *Session) send(ctx context.Context, stream workerpb.Worker_SessionClient) error {
	var last uint64
	var progressAt time.Time
	for {
		msgs, more := s.out.Take(last, time.Since(progressAt) >= progressEvery)
		for _, m := range msgs {
			if err := stream.Send(m); err != nil {
				return err
			}
			if m.GetProgress() != nil {
				progressAt = time.Now()
			}
			last = max(last, m.GetSeq())
		}
		var later <-chan time.Time
		if more {
			later = time.After(time.Until(progressAt.Add(progressEvery)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.out.wake:
		case <-later:
		}
	}
}

// maxFacts is what the appliance takes, in bytes.
const maxFacts = 256 << 10

// collect looks at the machine and puts what it finds into the outbox, once per boot.
func (s *Session) collect(ctx context.Context) { s.c.Facts(ctx, s.found) }

func (s *Session) found(f hardware.Facts) {
	var seq uint64
	defer func() {
		s.looked.Do(func() { s.firstFacts = seq; close(s.haveFacts) })
	}()
	f.Worker = s.c.Version
	f.Disks, f.NICs = slices.Clone(f.Disks), slices.Clone(f.NICs) // who found them may still be looking
	f.Cap()
	all := f
	s.latest.Store(&all)
	b, err := json.Marshal(f)
	if err == nil && len(b) > maxFacts {
		f.Disks = slices.Clone(f.Disks) // those of latest keep theirs
		for i := range f.Disks {
			f.Disks[i].Layout = nil
		}
		b, err = json.Marshal(f)
	}
	for err == nil && len(b) > maxFacts {
		f.Disks = f.Disks[:len(f.Disks)/2]
		f.NICs = f.NICs[:len(f.NICs)/2]
		b, err = json.Marshal(f)
	}
	if err != nil {
		s.c.Say("the facts of this machine cannot be reported: %v", err)
		return
	}
	seq = s.out.Add(&workerpb.Up{Body: &workerpb.Up_Facts{Facts: &workerpb.Facts{Json: b}}})
}

// lookAgain reports what is on the disks after actions wrote to them. All else in the
// facts stays as it was found: a disk that broke meanwhile is missing from a release, not
// from the machine.
func (s *Session) lookAgain(ctx context.Context) {
	if s.c.Look == nil {
		return
	}
	limit := time.NewTimer(factsLimit)
	defer limit.Stop()
	select {
	case <-s.haveFacts:
	case <-limit.C:
		return
	case <-ctx.Done():
		return
	}
	latest := s.latest.Load()
	if latest == nil {
		return
	}
	f := *latest
	f.Disks = slices.Clone(f.Disks)
	s.c.Look(ctx, f.Disks)
	s.found(f)
}
