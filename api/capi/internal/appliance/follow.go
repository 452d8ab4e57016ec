package appliance

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// Signal says that something happened in an appliance that somebody may wait for.
type Signal struct {
	// Secret is that of the Appliance.
	Secret ctrlclient.ObjectKey
	// Hardware is the name of the machine; empty where it is about none.
	Hardware string
	// Free: a machine, or an image, may be there now for whoever waits for one.
	Free bool
	// All: events may have been missed; everything has to be looked at again.
	All bool
}

const (
	// firstPause and lastPause bound the wait before a stream that was refused is asked
	// for again.
	firstPause = time.Second
	lastPause  = time.Minute
)

// Listen has f called with what happens in every appliance, one call at a time for each.
// Call it before Start.
func (p *Pool) Listen(f func(Signal)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, f)
}

// Start follows the appliances until ctx ends, one stream for each Secret.
func (p *Pool) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for key, have := range p.have {
		p.have[key] = p.followed(have)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.streams.Wait()
	return nil
}

// followed begins the stream of one appliance. The caller holds p.mu.
func (p *Pool) followed(x pooled) pooled {
	if p.ctx == nil || p.ctx.Err() != nil || len(p.listeners) == 0 {
		return x
	}
	ctx, stop := context.WithCancel(p.ctx)
	x.stop = stop
	p.streams.Go(func() { x.app.follow(ctx, p.listeners) })
	return x
}

// drop ends what is kept of an appliance. The caller holds p.mu.
func (p *Pool) drop(key ctrlclient.ObjectKey) {
	old, ok := p.have[key]
	if !ok {
		return
	}
	if old.stop != nil {
		old.stop()
	}
	old.app.Close()
	delete(p.have, key)
}

// follow tells the listeners what happens until ctx ends.
func (a *Appliance) follow(ctx context.Context, listeners []func(Signal)) {
	log := ctrl.Log.WithName("appliance").WithValues("secret", a.Secret)
	tell := func(s Signal) {
		s.Secret = a.Secret
		for _, f := range listeners {
			f(s)
		}
	}
	for pause := time.Duration(0); ctx.Err() == nil; {
		began := time.Now()
		_, cursor, err := a.ListEvents(ctx, client.Filter{Limit: 1})
		if err == nil {
			a.Waited(nil, 0) // it answers again
			tell(Signal{All: true})
			err = a.read(ctx, cursor, tell)
		}
		if ctx.Err() != nil {
			return
		}
		log.Info("the appliance's events cannot be followed; trying again", "error", err.Error())
		pause = pauseAfter(pause, time.Since(began))
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// pauseAfter is the pause after a stream that lasted so long; was is the one before it.
// Each stream begins with a look at everything, so that one that is refused again and
// again, as by a proxy, would be a hot loop.
func pauseAfter(was, lasted time.Duration) time.Duration {
	if lasted > lastPause {
		return firstPause
	}
	return min(max(2*was, firstPause), lastPause)
}

// read reads the stream until it is refused; one that breaks goes on by itself.
func (a *Appliance) read(ctx context.Context, cursor uint64, tell func(Signal)) error {
	for m, err := range a.Events(ctx, cursor, client.Filter{}) {
		switch {
		case err != nil:
			return err
		case m.Compacted:
			tell(Signal{All: true})
		case m.Event != nil && (stirs(m.Event.Reason) || frees(m.Event.Reason)):
			tell(Signal{Hardware: m.Event.Machine, Free: frees(m.Event.Reason)})
		}
	}
	return ctx.Err()
}

// stirs reports whether such an event may be what somebody waits for. Packets, boots
// and single actions are not: they would wake everybody all the time.
func stirs(r hardware.Reason) bool {
	switch r {
	case hardware.ReasonWorkflowCreated, hardware.ReasonWorkflowStarted, hardware.ReasonWorkflowSucceeded, hardware.ReasonWorkflowFailed,
		hardware.ReasonWorkflowTimeout, hardware.ReasonWorkflowCancelled,
		hardware.ReasonRecordChanged, hardware.ReasonRecordDeleted, hardware.ReasonDropped,
		hardware.ReasonPowerDone, hardware.ReasonPowerFailed, hardware.ReasonPowerByHand,
		hardware.ReasonClaimed, hardware.ReasonClaimEnded, hardware.ReasonReleaseAsked, hardware.ReasonReleasing, hardware.ReasonReleasedUnwiped,
		hardware.ReasonStopped, hardware.ReasonNotStopped, hardware.ReasonUnhealthy, hardware.ReasonNotWiped, hardware.ReasonQuarantined, hardware.ReasonRetiredNow,
		hardware.ReasonOSUp, hardware.ReasonOSNotUp, hardware.ReasonIssueOpened, hardware.ReasonIssueClosed, hardware.ReasonIssueChanged:
		return true
	}
	return false
}

// frees reports whether such an event may mean that there is something to claim.
func frees(r hardware.Reason) bool {
	switch r {
	case hardware.ReasonStateChanged, hardware.ReasonWiped, hardware.ReasonAccepted, hardware.ReasonMaintenanceEnded, hardware.ReasonRecordCreated,
		hardware.ReasonRecordChanged, hardware.ReasonClaimEnded, hardware.ReasonReservationEnded, hardware.ReasonFactsChanged, hardware.ReasonFactsReported, hardware.ReasonRestored,
		hardware.ReasonImageReady, hardware.ReasonImageFailed:
		return true
	}
	return false
}
