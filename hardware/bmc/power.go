package bmc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Limits on calls at the same time: a whole rack that is switched on at once does
// not storm, and a receiver that hangs does not take the places of the others.
const (
	MaxCalls         = 16
	MaxCallsReceiver = 8
)

// Outcome is what came of a request.
type Outcome struct {
	// Driver is manual or webhook. With manual nothing was done: Message says what a
	// person has to do, and somebody must be told.
	Driver string
	State  hardware.PowerState
	// Message is for people; empty where there is nothing to say.
	Message string
}

// Power controls the power of all machines. Its methods may be used concurrently.
type Power struct {
	o        Options
	metrics  *Metrics
	machines *gates
	receiver *gates
	all      *gates
}

// NewPower makes the control. metrics may be nil.
func NewPower(o Options, metrics *Metrics) *Power {
	p := &Power{metrics: metrics, machines: newGates(1), receiver: newGates(MaxCallsReceiver), all: newGates(MaxCalls)}
	o.enter = p.enter
	p.o = o.complete()
	return p
}

// enter is called before each try and left after it: a receiver that is waited for
// takes nobody's place meanwhile.
func (p *Power) enter(ctx context.Context, receiver string) (func(), error) {
	first, err := p.receiver.enter(ctx, receiver)
	if err != nil {
		return nil, err
	}
	second, err := p.all.enter(ctx, "")
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}

// Do has action (on, off, cycle or status) done to a machine. With nextBoot (network
// or disk; on and cycle only) the machine is told first what to boot from; where its
// controller cannot, the rest is done all the same and the message says so.
//
// Requests for one machine take turns. A try takes 20 s at most and there are 4, but
// waiting for a turn has no other end than ctx's.
//
// It returns a *Refused where asking again is of no use, and an *Unreachable where
// it may be; Outcome.Driver is set then, too. That a person has to do it is not an
// error.
func (p *Power) Do(ctx context.Context, h *hardware.Hardware, action, nextBoot string) (Outcome, error) {
	out := Outcome{Driver: DriverName(h)}
	start := p.o.Now()
	hand, err := p.do(ctx, h, Action(action), Device(nextBoot), &out)
	p.metrics.done(out.Driver, Action(action), result(hand, err), p.o.Now().Sub(start))
	return out, err
}

func (p *Power) do(ctx context.Context, h *hardware.Hardware, action Action, from Device, out *Outcome) (byHand bool, err error) {
	defer func() {
		if r := recover(); r != nil { // a driver reads what a controller wrote
			err = &Refused{Who: h.Meta.Name, Why: fmt.Sprintf("its driver %s failed on what the controller said: %v (report it)", out.Driver, r)}
		}
	}()
	if err := check(h, action, from); err != nil {
		return false, err
	}
	d, err := New(h, p.o)
	if err != nil {
		return false, err
	}
	leave, err := p.machines.enter(ctx, h.Meta.Name+"\x00"+h.Meta.UID)
	if err != nil {
		return false, &Unreachable{Who: h.Meta.Name, Tries: 1, Err: fmt.Errorf("another request for this machine is under way: %w", err)}
	}
	defer leave()

	var said, hands []string
	take := func(a Answer, err error) error {
		if a.Message != "" && !slices.Contains(said, a.Message) {
			said = append(said, a.Message)
		}
		out.State = a.State
		if hand, ok := errors.AsType[*ByHand](err); ok {
			hands = append(hands, hand.Do)
			return nil
		}
		return err
	}
	if from != "" {
		err := take(d.NextBoot(ctx, from))
		if errors.Is(err, errors.ErrUnsupported) {
			said = append(said, fmt.Sprintf("its controller cannot set the next boot to %s", from))
		} else if err != nil {
			return false, err
		}
	}
	if err := take(verb(d, action)(ctx)); err != nil {
		return false, err
	}
	if len(hands) > 0 {
		said = append(said, instruction(hands, action, from))
	}
	out.Message = strings.Join(said, "; ")
	return len(hands) > 0, nil
}

// check returns a *Refused for what nobody can be asked.
func check(h *hardware.Hardware, action Action, from Device) error {
	switch {
	case !slices.Contains([]Action{ActionOn, ActionOff, ActionCycle, ActionStatus}, action):
		return &Refused{Who: h.Meta.Name, Why: fmt.Sprintf("action %.40q is not known (on, off, cycle or status)", action)}
	case from != "" && from != Network && from != Disk:
		return &Refused{Who: h.Meta.Name, Why: fmt.Sprintf("next boot %.40q is not known (network or disk)", from)}
	case from != "" && action != ActionOn && action != ActionCycle:
		return &Refused{Who: h.Meta.Name, Why: fmt.Sprintf("a next boot goes with on and cycle, not with %s", action)}
	}
	return nil
}

func verb(d Driver, a Action) func(context.Context) (Answer, error) {
	switch a {
	case ActionOn:
		return d.On
	case ActionOff:
		return d.Off
	case ActionCycle:
		return d.Cycle
	default:
		return d.Status
	}
}

// instruction is what a person reads who has to do it: to switch comes first, though
// a controller is told of the next boot before.
func instruction(hands []string, action Action, from Device) string {
	slices.Reverse(hands)
	s := strings.Join(hands, " and ")
	if action != ActionOff && from != Disk {
		s += "; it continues at its next DHCP packet"
	}
	return s
}

// result is the metric's label.
func result(byHand bool, err error) string {
	_, refused := errors.AsType[*Refused](err)
	switch {
	case byHand:
		return "by-hand"
	case err == nil:
		return "done"
	case refused:
		return "refused"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return "unreachable"
	}
}
