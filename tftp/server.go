package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	pin "github.com/pin/tftp/v3"
	"golang.org/x/sys/unix"
)

// File is what a Handler serves. It is closed when its transfer ends.
type File interface {
	io.ReadCloser
	// Size in bytes for the tsize option; negative: not known.
	Size() int64
}

// Handler finds files.
type Handler interface {
	// Open returns the file of a clean name. fs.ErrNotExist is the normal answer to
	// the names that boot loaders try; the text of any other error stays here and
	// the client is told only that it was refused. ctx ends with the transfer.
	Open(ctx context.Context, client netip.AddrPort, name string) (File, error)
}

// Observer is told what happened. Its methods are called by many goroutines and
// must not block.
type Observer interface {
	// Done: a transfer ended. err is nil, ErrProbe, ErrStopped, or what went wrong.
	Done(t Transfer, err error)
	// Refused: a request was answered with an error. err wraps fs.ErrNotExist, a
	// *NameError, ErrWrite, ErrBusy, ErrMalformed, or is the Handler's. client and
	// name are zero where the packet could not be read.
	Refused(client netip.AddrPort, name string, err error)
}

// Transfer is one transfer that ended.
type Transfer struct {
	Client   netip.AddrPort
	Name     string // clean
	Bytes    int64  // read from the file for this client
	Size     int64  // of the file; negative: not known
	Duration time.Duration
}

// How requests and transfers end early.
var (
	// ErrProbe: the client ended the transfer before its first block, as firmware
	// does that only wants to know the size. It is not a failure.
	ErrProbe = errors.New("the client asked for the size only")
	// ErrStopped: the client ended the transfer on its own later than that.
	ErrStopped = errors.New("the client ended the transfer")
	// ErrTimeout: the client stopped answering.
	ErrTimeout   = errors.New("the client stopped answering")
	ErrWrite     = errors.New("this server is read-only")
	ErrBusy      = errors.New("too many transfers at once, try again")
	ErrMalformed = errors.New("not a TFTP request")
)

const (
	// DefaultPort is TFTP's.
	DefaultPort = 69
	// maxTransfers at once, maxPerClient for one address: firmware probes the size
	// and repeats requests from other ports before the first one ends.
	maxTransfers = 1024
	maxPerClient = 16
	// blockSize fills an Ethernet frame: 1500 less 20 IP, 8 UDP, 4 TFTP.
	blockSize = 1468
	// A block is sent again after ackTimeout and a pause that grows, up to retries
	// times: 1, 2, 3.5, 5.5, 8.5, 12.5 s after it was first sent. A client is given
	// up after 16.5 s.
	ackTimeout = time.Second
	retries    = 6
	// stopGrace is how long Run waits for transfers to end; one whose client has
	// vanished ends by itself some seconds later.
	stopGrace = 3 * time.Second
)

// Config is what a Server needs; Handler is required.
type Config struct {
	// Listen is the address to listen on; 0.0.0.0:69 where zero. Replies come from
	// the address a client asked, whichever of ours that is.
	Listen   netip.AddrPort
	Handler  Handler
	Observer Observer     // nil: nobody is told
	Log      *slog.Logger // discarded where nil
	// In runs what opens the listening socket; nil: as is. Tests use it to enter a
	// network namespace.
	In func(func() error) error
}

// Server is a read-only TFTP server.
type Server struct {
	cfg     Config
	ready   chan struct{}
	timeout time.Duration // ackTimeout but in tests

	mu      sync.Mutex
	addr    netip.AddrPort
	active  int
	clients map[netip.Addr]int
}

// New checks the configuration; nothing is opened before Run.
func New(c Config) (*Server, error) {
	if c.Handler == nil {
		return nil, errors.New("tftp: Handler is required")
	}
	if !c.Listen.IsValid() {
		c.Listen = netip.AddrPortFrom(netip.IPv4Unspecified(), DefaultPort)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.In == nil {
		c.In = func(f func() error) error { return f() }
	}
	return &Server{cfg: c, ready: make(chan struct{}), timeout: ackTimeout, clients: map[netip.Addr]int{}}, nil
}

// Ready is closed when requests are taken.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Addr is the address listened on, after Ready.
func (s *Server) Addr() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Run serves until ctx ends, and returns nil then; transfers are ended with it.
// It fails at once where the port is taken or may not be opened. Run must be
// called once.
func (s *Server) Run(ctx context.Context) error {
	conn, err := s.listen()
	if err != nil {
		return err
	}
	defer conn.Close()
	s.mu.Lock()
	s.addr = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	s.mu.Unlock()

	srv := pin.NewServer(
		func(name string, rf io.ReaderFrom) error { return s.read(ctx, name, rf) },
		func(name string, wt io.WriterTo) error { return s.write(name, wt) },
	)
	srv.SetBlockSize(blockSize)
	// pin/tftp would look up the interface's MTU for each request, and fall back to
	// 512 bytes whenever another interface changes meanwhile.
	srv.SetBlockSizeNegotiation(false)
	srv.SetTimeout(s.timeout)
	srv.SetRetries(retries)
	srv.SetBackoff(func(attempt int) time.Duration {
		if ctx.Err() != nil {
			return 0
		}
		return s.timeout * []time.Duration{0, 1, 2, 4, 6, 6}[min(attempt, 5)] / 2
	})
	srv.SetHook(hook{s})

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = conn.Close() // srv may not have it yet
		srv.Shutdown()   // waits for the transfers
	}()
	close(s.ready)
	if err := srv.Serve(conn); err != nil && ctx.Err() == nil {
		return fmt.Errorf("tftp: %w", err)
	}
	select {
	case <-stopped:
	case <-time.After(stopGrace):
		s.cfg.Log.Warn("tftp transfers left behind", "clients", s.busy())
	}
	return nil
}

func (s *Server) listen() (conn *net.UDPConn, err error) {
	network := "udp4" // an IPv4 socket tells pin/tftp our address and the MTU
	if s.cfg.Listen.Addr().Is6() {
		network = "udp6"
	}
	err = s.cfg.In(func() error {
		conn, err = net.ListenUDP(network, net.UDPAddrFromAddrPort(s.cfg.Listen))
		return err
	})
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("UDP %v: in use by another process (find it with `ss -lunp sport = :%d`, stop it, or set tftp.listen)", s.cfg.Listen, s.cfg.Listen.Port())
	case errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("UDP %v: not permitted (run as root, or with CAP_NET_BIND_SERVICE)", s.cfg.Listen)
	case err != nil:
		return nil, fmt.Errorf("UDP %v: %w", s.cfg.Listen, err)
	}
	return conn, nil
}

// enter counts a transfer in; false: too many.
func (s *Server) enter(client netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active >= maxTransfers || s.clients[client] >= maxPerClient {
		return false
	}
	s.active++
	s.clients[client]++
	return true
}

func (s *Server) leave(client netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.clients[client]--; s.clients[client] == 0 {
		delete(s.clients, client)
	}
}

func (s *Server) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

func (s *Server) refused(client netip.AddrPort, name string, err error) {
	if s.cfg.Observer != nil {
		s.cfg.Observer.Refused(client, name, err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Log.Debug("tftp request refused", "client", client, "name", name, "error", err)
	}
}
