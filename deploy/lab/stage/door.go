package stage

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// Door is a port of the host's loopback that leads to an address inside a namespace.
// What goes through it is not looked at, so that TLS is between the two ends.
type Door struct {
	ln net.Listener
	ns *lab.Namespace
	to string

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

// OpenDoor opens a free port. Connections fail at once while nobody listens inside.
func OpenDoor(ctx context.Context, ns *lab.Namespace, to string) (*Door, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &Door{ln: ln, ns: ns, to: to, conns: map[net.Conn]struct{}{}}
	d.all.Go(d.accept)
	return d, nil
}

// Addr is the port.
func (d *Door) Addr() string { return d.ln.Addr().String() }

func (d *Door) accept() {
	for {
		c, err := d.ln.Accept()
		if err != nil {
			return // closed
		}
		d.all.Go(func() { d.join(c) })
	}
}

// join carries bytes both ways until one end is closed.
func (d *Door) join(outside net.Conn) {
	defer d.drop(outside)
	if !d.keep(outside) {
		return
	}
	inside, err := d.ns.Dial(context.Background(), "tcp4", d.to)
	if err != nil {
		return // the caller sees a connection that is closed
	}
	defer d.drop(inside)
	if !d.keep(inside) {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{inside, outside}, {outside, inside}} {
		d.all.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // an end that is gone ends both
			done <- struct{}{}
		})
	}
	<-done
}

// keep remembers a connection to be closed with the door; false: the door is shut.
func (d *Door) keep(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shut {
		d.conns[c] = struct{}{}
	}
	return !d.shut
}

func (d *Door) drop(c net.Conn) {
	_ = c.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// Close ends the port and all that goes through it.
func (d *Door) Close() error {
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return nil
	}
	d.shut = true
	err := d.ln.Close()
	for c := range d.conns {
		err = errors.Join(err, c.Close())
	}
	d.mu.Unlock()
	d.all.Wait()
	return err
}
