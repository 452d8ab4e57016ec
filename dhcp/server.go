package dhcp

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Leases keeps leases durably, one for each client in a Subnet (its name).
type Leases interface {
	// Confirm returns when the lease is on disk. A reservation is ACKed even if it
	// fails: it stands in the record.
	Confirm(ctx context.Context, l hardware.Lease) error
	// Get reads the lease of a client, from memory.
	Get(subnet string, mac hardware.MAC) (hardware.Lease, bool)
	// List returns all, also those that have ended.
	List() []hardware.Lease
	// Delete forgets a lease; it returns when that is on disk. One that is not there is
	// no error.
	Delete(ctx context.Context, subnet string, mac hardware.MAC) error
}

// Boots keeps the boots of machines. Its methods are called by many goroutines,
// but for one MAC one after the other.
type Boots interface {
	// FirstPacket returns the boot that a packet of firmware belongs to, starting
	// one where hardware.Boot.Supersedes says so. ipxe: the sender is an iPXE. With
	// an error the Boot is what it would be: a machine that would boot our worker is
	// met with silence, because its token could not be kept; others are answered.
	FirstPacket(ctx context.Context, f FirstPacket) (hardware.Boot, error)
	// Current returns the machine's open boot, for a packet that cannot start one;
	// false: it has none.
	Current(hardwareUID string, mac hardware.MAC) (hardware.Boot, bool)
	// Acked records the addresses of a boot before the ACK leaves, and that an iPXE
	// program of ours was named (Programs counts that).
	Acked(ctx context.Context, a Acked) error
	// Observe tells the timeline what was decided. It must not block.
	Observe(o Observation)
}

// FirstPacket is a firmware's packet that starts or continues a boot.
type FirstPacket struct {
	Hardware string // uid, or hardware.StrangerUID
	MAC      hardware.MAC
	XID      uint32
	Firmware hardware.Firmware
	IPXE     bool
	Subnet   *hardware.Subnet
}

// Acked is an address confirmed to a booting machine.
type Acked struct {
	Hardware string // uid
	Boot     string // id
	Client   netip.Addr
	Server   netip.Addr // our address as the client was told
	Program  bool       // the ACK names an iPXE program of ours
	Proxied  bool       // the address is another server's
}

// Observation is one decision about a known machine.
type Observation struct {
	MAC      hardware.MAC
	Hardware string // uid
	Boot     string // id; empty where the packet was not of firmware
	Firmware hardware.Firmware
	Reason   hardware.Reason
	Detail   string
}

// Config is what a Server needs. Interfaces, View, Leases, Boots and Metrics are
// required.
type Config struct {
	Interfaces []string
	HTTPPort   uint16 // of our boot files; 7080 where 0
	// Programs are the operator's boot programs, by architecture code; each replaces
	// what we would name.
	Programs  map[uint16]string
	View      View
	Leases    Leases
	Boots     Boots
	Metrics   *Metrics
	Strangers *StrangerRing // a new one where nil
	// SearchEvery is the pause between two searches for other DHCP servers; 0: none is
	// searched for, and we are the authority.
	SearchEvery time.Duration
	// Found is told what a search came to; it must not block. May be nil.
	Found func(Finding)
	Log   *slog.Logger     // discarded where nil
	Now   func() time.Time // time.Now where nil
	// In runs what opens sockets and lists interfaces; nil: as is. Tests use it to
	// enter a network namespace.
	In func(func() error) error
}

const (
	// shards is how many packets are worked on at once. One MAC is always in the
	// same shard, so its packets keep their order; while one waits for the disk the
	// others go on, and the disk sees their writes together.
	shards     = 64
	shardQueue = 32
	// storeTimeout bounds what a packet waits for the store; the client will have
	// asked again by then.
	storeTimeout = 3 * time.Second
)

// Server answers DHCP on some interfaces.
type Server struct {
	Config
	ready  chan struct{}
	ports  []*port
	tx     *PacketSocket
	queues [shards]chan *job
	seed   maphash.Seed
	jobs   sync.Pool
	// locks are for what belongs to one MAC: its shard's packets, and what others do with
	// its lease.
	locks [shards]sync.Mutex
	pools pools
	probe *prober
	// rivalMu guards the rivals of all ports.
	rivalMu sync.Mutex
	// ask is (*prober).ask but in tests.
	ask func(j *job, a netip.Addr, mac hardware.MAC, link *port) bool
	// transmit is (*port).send but in tests.
	transmit func(p *port, to Destination, from netip.Addr, payload []byte) error
}

// New checks the configuration; nothing is opened before Run.
func New(c Config) (*Server, error) {
	switch {
	case len(c.Interfaces) == 0:
		return nil, errors.New("dhcp: no interface is named (list those of the provisioning network)")
	case c.View == nil || c.Leases == nil || c.Boots == nil || c.Metrics == nil:
		return nil, errors.New("dhcp: View, Leases, Boots and Metrics are required")
	}
	if c.HTTPPort == 0 {
		c.HTTPPort = 7080
	}
	if c.Strangers == nil {
		c.Strangers = NewStrangerRing()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.In == nil {
		c.In = func(f func() error) error { return f() }
	}
	s := &Server{Config: c, ready: make(chan struct{}), seed: maphash.MakeSeed(), transmit: (*port).send}
	s.pools.byName = map[string]*subnetPool{}
	s.probe = newProber(s)
	s.ask = s.probe.ask
	c.Metrics.pools.follow(s)
	s.jobs.New = func() any { return new(job) }
	for i := range s.queues {
		s.queues[i] = make(chan *job, shardQueue)
	}
	seen := map[string]bool{}
	for _, name := range c.Interfaces {
		if seen[name] {
			return nil, fmt.Errorf("dhcp: interface %s is listed twice", name)
		}
		seen[name] = true
		s.ports = append(s.ports, newPort(s, name, ServerPort), newPort(s, name, ProxyPort))
	}
	return s, nil
}

// Ready is closed when every interface is being listened on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run answers packets until ctx ends, and returns nil then. It fails at once
// where an interface does not exist, the port is taken (the error names who has
// it), or the process may not open sockets. An interface that goes away later is
// waited for. Run must be called once.
func (s *Server) Run(ctx context.Context) error {
	var err error
	if s.tx, err = OpenPacket(s.In); err != nil {
		return err
	}
	defer s.tx.Close()
	for _, p := range s.ports {
		defer p.close()
		if err := p.open(ctx); err != nil && !s.spares(p, err) {
			return err
		}
	}
	if err := s.probe.listen(ctx); err != nil {
		return err
	}
	stopProbe := context.AfterFunc(ctx, s.probe.close)
	defer stopProbe()
	defer s.probe.close()
	watch, err := openWatch(s.In)
	if err != nil {
		return err
	}
	defer watch.Close()
	stopWatch := context.AfterFunc(ctx, func() { _ = watch.Close() })
	defer stopWatch()

	var wg sync.WaitGroup
	wg.Go(func() { s.watch(ctx, watch) })
	wg.Go(func() { s.probe.hearARP(ctx) })
	wg.Go(func() { s.probe.hearICMP(ctx) })
	for _, q := range s.queues {
		wg.Go(func() { s.work(ctx, q) })
	}
	for _, p := range s.ports {
		wg.Go(func() { p.run(ctx) })
		if s.SearchEvery > 0 && p.number == ServerPort {
			wg.Go(func() { p.searches(ctx) })
		}
	}
	close(s.ready)
	wg.Wait() // they all end with ctx; only then may the sockets go
	return nil
}

// spares reports whether we can do without a port that another process has: 4011, as
// long as no Subnet is in mode proxy. It is tried again until it is free.
func (s *Server) spares(p *port, err error) bool {
	if p.number != ProxyPort || !errors.Is(err, errInUse) || slices.ContainsFunc(s.View.Subnets(), (*hardware.Subnet).Proxy) {
		return false
	}
	s.Log.Warn("no answers on port 4011, which Subnets of mode proxy need", "interface", p.name, "error", err)
	return true
}

// work answers the packets of one queue.
func (s *Server) work(ctx context.Context, q chan *job) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-q:
			if !s.survive(ctx, j) {
				s.recycle(j)
			}
		}
	}
}

// survive turns a panic over one packet into its loss: whoever can send one must not
// take the appliance down. The job may be somebody else's by then, so it is not used again.
func (s *Server) survive(ctx context.Context, j *job) (parked bool) {
	defer func() {
		if r := recover(); r != nil {
			parked = true
			s.Metrics.dropped.Inc()
			s.Log.Error("dhcp packet panicked", "interface", j.port.name, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	return s.handle(ctx, j)
}

// enqueue hands a packet to its queue. When that is full the packet is dropped: a
// flood with one MAC must not keep the others waiting, and a client asks again.
func (s *Server) enqueue(j *job) {
	select {
	case s.queues[s.shard(j.mac())] <- j:
	default:
		s.Metrics.dropped.Inc()
		s.recycle(j)
	}
}

// recycle takes a job back that nobody needs any more.
func (s *Server) recycle(j *job) {
	j.waited = waited{}
	s.jobs.Put(j)
}

// mac is the client's; zero where the packet is too short to have one.
func (j *job) mac() (m hardware.MAC) {
	if j.n >= headerSize {
		copy(m[:], j.buf[chaddrOffset:])
	}
	return m
}

func (s *Server) shard(m hardware.MAC) uint64 { return maphash.Bytes(s.seed, m[:]) % shards }

// exclusive runs f while nothing else is done for the MAC.
func (s *Server) exclusive(m hardware.MAC, f func()) {
	l := &s.locks[s.shard(m)]
	l.Lock()
	defer l.Unlock()
	f()
}
