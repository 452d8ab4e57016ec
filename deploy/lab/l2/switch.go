package l2

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	tick      = 100 * time.Millisecond
	queueSize = 2000 // frames of a port; more are dropped, as a switch does
)

// Switch is a Table with sockets and a clock. Its methods may be used concurrently.
type Switch struct {
	events chan func(now time.Time)
	done   chan struct{}
	stop   sync.Once
	stops  chan struct{}

	// Of the loop.
	table   *Table
	ports   []*attached
	flight  flight
	serial  uint64
	capture io.Writer
}

// attached is a port and what it is plugged into.
type attached struct {
	in, out *Line
	conn    io.ReadWriteCloser // nil: nothing
	queue   chan []byte
}

// New makes a switch without ports, which runs until Close.
func New() *Switch {
	s := &Switch{events: make(chan func(time.Time)), done: make(chan struct{}), stops: make(chan struct{}), table: NewTable()}
	go s.run()
	return s
}

// AddPort adds a port with nothing plugged in, and returns its number.
func (s *Switch) AddPort(p Port) (n int, err error) {
	derr := s.do(func(time.Time) {
		if n, err = s.table.Add(p); err == nil {
			s.ports = append(s.ports, &attached{in: newLine(&p, 0), out: newLine(&p, 1)})
		}
	})
	return n, errors.Join(err, derr)
}

// Frames are a conn whose reads and writes are one frame each, as a TAP's are.
type Frames struct{ io.ReadWriteCloser }

// Plug connects a port to conn, which is a QEMU stream socket or Frames, and brings
// its link up. The switch closes conn: when it ends, or when the port is plugged
// anew.
func (s *Switch) Plug(port int, conn io.ReadWriteCloser) error {
	return s.do(func(now time.Time) {
		s.unplug(port)
		a := s.ports[port]
		a.conn, a.queue = conn, make(chan []byte, queueSize)
		s.table.Link(now, port, true)
		go s.read(port, conn)
		go write(conn, a.queue)
	})
}

// Flap takes a port's link down and up again, as a network card's reset does.
// Nothing happens to a port without a link.
func (s *Switch) Flap(port int) error {
	return s.do(func(now time.Time) {
		if s.ports[port].conn != nil {
			s.table.Link(now, port, true)
		}
	})
}

// Forwards reports whether frames pass the port, and if not, why.
func (s *Switch) Forwards(port int) (ok bool, why string, err error) {
	err = s.do(func(now time.Time) { ok, why = s.table.Forwards(now, port) })
	return ok, why, err
}

// Lost counts the frames that the port's cable lost in both directions since it was
// plugged in.
func (s *Switch) Lost(port int) (n int, err error) {
	err = s.do(func(time.Time) { n = s.ports[port].in.lost + s.ports[port].out.lost })
	return n, err
}

// Capture writes what comes in at the ports and leaves by them to w, in pcap format,
// from now on: as the switch sees it, so without what the cables lose.
func (s *Switch) Capture(w io.Writer) error {
	if _, err := w.Write(pcapHeader()); err != nil {
		return err
	}
	return s.do(func(time.Time) { s.capture = w })
}

// Close unplugs all ports. It may be called again.
func (s *Switch) Close() error {
	s.stop.Do(func() { close(s.stops) })
	<-s.done
	return nil
}

// do has fn run in the loop and returns after it. It fails after Close.
func (s *Switch) do(fn func(now time.Time)) error {
	ran := make(chan struct{})
	select {
	case s.events <- func(now time.Time) { fn(now); close(ran) }:
		<-ran
		return nil
	case <-s.done:
		return fmt.Errorf("the switch: %w", os.ErrClosed)
	}
}

func (s *Switch) run() {
	defer close(s.done)
	clock := time.NewTicker(tick)
	defer clock.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		select {
		case fn := <-s.events:
			fn(time.Now())
		case <-clock.C:
			now := time.Now()
			s.send(now, s.table.Tick(now))
		case <-due.C:
		case <-s.stops:
			for port := range s.ports {
				s.unplug(port)
			}
			return
		}
		if next, ok := s.deliver(time.Now()); ok {
			due.Reset(time.Until(next))
		}
	}
}

func (s *Switch) unplug(port int) {
	a := s.ports[port]
	if a.conn == nil {
		return
	}
	_ = a.conn.Close() // nothing is left to be said to it
	close(a.queue)
	a.conn, a.queue = nil, nil
	s.table.Link(time.Now(), port, false)
}

// read hands what comes over the cable to the loop, until the conn's end.
func (s *Switch) read(port int, conn io.Reader) {
	buf := make([]byte, maxFrame)
	for {
		var n int
		var err error
		if f, ok := conn.(Frames); ok {
			n, err = f.Read(buf)
		} else {
			n, err = readFrame(conn, buf)
		}
		frame := append([]byte(nil), buf[:max(n, 0)]...)
		if derr := s.do(func(now time.Time) {
			switch a := s.ports[port]; {
			case a.conn != conn: // plugged anew
			case err != nil:
				s.unplug(port)
			default:
				if at, ok := a.in.Send(now, len(frame)); ok {
					s.after(at, func(now time.Time) {
						s.record(now, frame)
						s.send(now, s.table.Receive(now, port, frame))
					})
				}
			}
		}); derr != nil || err != nil {
			return
		}
	}
}

// write sends what the loop queues. A conn that failed is closed by its reader; the
// rest of the queue is of no use then.
func write(conn io.Writer, queue <-chan []byte) {
	var err error
	for frame := range queue {
		switch f, ok := conn.(Frames); {
		case err != nil:
		case ok:
			_, err = f.Write(frame)
		default:
			err = writeFrame(conn, frame)
		}
	}
}

func (s *Switch) send(now time.Time, out []Out) {
	for _, o := range out {
		at, ok := s.ports[o.Port].out.Send(now, len(o.Frame))
		s.record(now, o.Frame)
		if !ok {
			continue
		}
		s.after(at, func(time.Time) {
			if a := s.ports[o.Port]; a.queue != nil {
				select {
				case a.queue <- o.Frame:
				default:
				}
			}
		})
	}
}

func (s *Switch) record(now time.Time, frame []byte) {
	if s.capture != nil && pcapFrame(s.capture, now, frame) != nil {
		s.capture = nil // the disk is full, or the file is closed
	}
}

// after has fn run in the loop at a time, in the order of the times, and of the calls
// where they are equal.
func (s *Switch) after(at time.Time, fn func(now time.Time)) {
	s.serial++
	heap.Push(&s.flight, arrival{at, s.serial, fn})
}

// deliver does what is due and returns when more is.
func (s *Switch) deliver(now time.Time) (time.Time, bool) {
	for len(s.flight) > 0 {
		first := s.flight[0]
		if first.at.After(now) {
			return first.at, true
		}
		heap.Pop(&s.flight)
		first.fn(now)
	}
	return time.Time{}, false
}

// arrival is the end of a frame's way over a cable.
type arrival struct {
	at     time.Time
	serial uint64
	fn     func(now time.Time)
}

// flight is a heap of arrivals.
type flight []arrival

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	if f[i].at.Equal(f[j].at) {
		return f[i].serial < f[j].serial
	}
	return f[i].at.Before(f[j].at)
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(arrival)) }
func (f *flight) Pop() any {
	old := *f
	last := old[len(old)-1]
	*f = old[:len(old)-1]
	return last
}
