package bmc

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Device is what a machine boots from.
type Device string

// The devices.
const (
	Network Device = "network"
	Disk    Device = "disk"
)

// Answer is what a controller said after it did something.
type Answer struct {
	State hardware.PowerState
	// Message is for people, plain text of at most 256 bytes; often empty.
	Message string
}

// Driver controls the power of one machine. Each method returns a *ByHand where a
// person has to do it, a *Refused where asking again is of no use, and an
// *Unreachable where it may be.
type Driver interface {
	// Status asks whether the machine is on. It changes nothing.
	Status(ctx context.Context) (Answer, error)
	// On switches the machine on; one that is on is left alone.
	On(ctx context.Context) (Answer, error)
	// Off takes the power away, without a word to the operating system; a machine
	// that is off is left alone.
	Off(ctx context.Context) (Answer, error)
	// Cycle takes the power away and gives it back; a machine that is off is
	// switched on.
	Cycle(ctx context.Context) (Answer, error)
	// NextBoot says what the machine boots from at its next power-on or restart, and
	// then no more. It does not restart the machine. A controller that cannot returns
	// a *Refused that is errors.ErrUnsupported.
	NextBoot(ctx context.Context, from Device) (Answer, error)
}

// Options are what drivers need from outside.
type Options struct {
	// NewID makes the ULID of a call. Required.
	NewID func(now time.Time) string
	// Now is the clock; time.Now where nil.
	Now func() time.Time
	// Dial opens connections to controllers; an ordinary dialer where nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Wait waits between two tries; on the real clock where nil.
	Wait func(ctx context.Context, d time.Duration) error
	// Timeout bounds one try of one call; 20 s where zero.
	Timeout time.Duration

	// enter waits until one more try at this controller may begin; nil is at once.
	enter func(ctx context.Context, controller string) (leave func(), err error)
}

const defaultTimeout = 20 * time.Second

func (o Options) complete() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: defaultTimeout}).DialContext
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.enter == nil {
		o.enter = func(context.Context, string) (func(), error) { return func() {}, nil }
	}
	return o
}

// wait returns after d, or earlier with the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drivers are the drivers by the name in spec.power.driver.
func Drivers() map[string]func(*hardware.Hardware, Options) (Driver, error) {
	return map[string]func(*hardware.Hardware, Options) (Driver, error){
		hardware.PowerManual:  newManual,
		hardware.PowerWebhook: newWebhook,
	}
}

// DriverName is the driver of a machine: manual where its record names none.
func DriverName(h *hardware.Hardware) string {
	if h.Spec.Power == nil {
		return hardware.PowerManual
	}
	return h.Spec.Power.Driver
}

// New makes the driver of a machine. It returns a *Refused where the record's
// settings cannot work.
func New(h *hardware.Hardware, o Options) (Driver, error) {
	drivers := Drivers()
	name := DriverName(h)
	make, ok := drivers[name]
	if !ok {
		return nil, &Refused{Who: h.Meta.Name, Why: fmt.Sprintf("spec.power.driver: %q is not known (%s)", name, strings.Join(slices.Sorted(maps.Keys(drivers)), " or "))}
	}
	return make(h, o.complete())
}
