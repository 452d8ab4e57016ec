package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	pin "github.com/pin/tftp/v3"
)

// What clients are told; pin/tftp sends every one of them as error 1.
var (
	errNotFound = errors.New("file not found")
	errRefused  = errors.New("refused")
)

// read answers a read request. Its error is sent to the client.
func (s *Server) read(ctx context.Context, asked string, rf io.ReaderFrom) error {
	out := rf.(pin.OutgoingTransfer) // what pin/tftp documents of its argument
	client := addrPort(out.RemoteAddr())
	name, err := CleanName(asked)
	if err != nil {
		s.refused(client, "", err)
		return errRefused
	}
	if !s.enter(client.Addr()) {
		s.refused(client, name, ErrBusy)
		return ErrBusy
	}
	t, began, err := s.survive(func() (Transfer, bool, error) {
		defer s.leave(client.Addr())
		return s.transfer(ctx, client, name, rf, out)
	})
	switch {
	case !began && errors.Is(err, fs.ErrNotExist):
		s.refused(client, name, err)
		return errNotFound
	case !began:
		s.refused(client, name, err)
		return errRefused
	}
	if s.cfg.Observer != nil {
		s.cfg.Observer.Done(t, outcome(ctx, err))
	}
	return err
}

// survive turns a panic over one request into its end: whoever can send one must not
// take the appliance down.
func (s *Server) survive(transfer func() (Transfer, bool, error)) (t Transfer, began bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.Error("tftp request panicked", "panic", r, "stack", string(debug.Stack()))
			err = errRefused
		}
	}()
	return transfer()
}

// transfer opens the file and sends it. With began false the Handler refused.
func (s *Server) transfer(ctx context.Context, client netip.AddrPort, name string, rf io.ReaderFrom, out pin.OutgoingTransfer) (t Transfer, began bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := s.cfg.Handler.Open(ctx, client, name)
	if err != nil {
		return t, false, err
	}
	defer f.Close()
	t = Transfer{Client: client, Name: name, Size: f.Size()}
	if t.Size >= 0 {
		out.SetSize(t.Size)
	}
	start := time.Now()
	t.Bytes, err = rf.ReadFrom(stoppable{ctx, f})
	t.Duration = time.Since(start)
	return t, true, err
}

// write refuses a write request.
func (s *Server) write(name string, wt io.WriterTo) error {
	in := wt.(pin.IncomingTransfer)
	clean, _ := CleanName(name)
	s.refused(addrPort(in.RemoteAddr()), clean, ErrWrite)
	return ErrWrite
}

// outcome says in our words how a transfer ended.
func outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The client's error packet comes as text only. edk2 ends a size probe with
	// error 8 (RFC 2347), ROMs with error 0; block 0 is the option acknowledgement.
	var block, code int
	if n, _ := fmt.Sscanf(err.Error(), "sending block %d: code=%d", &block, &code); n == 2 {
		if block == 0 {
			return ErrProbe
		}
		return fmt.Errorf("%w at block %d with code %d", ErrStopped, block, code)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return ErrTimeout
	}
	return err
}

// stoppable is a reader that ends with its context, and the transfer with it.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, errors.New("the server is stopping")
	}
	return s.r.Read(p)
}

// hook hears of the packets that pin/tftp cannot read as a request; the rest of
// what it reports read and write know better.
type hook struct{ s *Server }

func (hook) OnSuccess(pin.TransferStats) {}

func (h hook) OnFailure(stats pin.TransferStats, err error) {
	if stats.RemoteAddr == nil {
		h.s.refused(netip.AddrPort{}, "", fmt.Errorf("%w: %v", ErrMalformed, err))
	}
}

func addrPort(a net.UDPAddr) netip.AddrPort {
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
