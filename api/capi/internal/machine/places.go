package machine

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
)

// place is where an object was last seen to be in an appliance.
type place struct {
	secret client.ObjectKey
	// hardware is empty while it has none.
	hardware string
}

// places knows whom an event of an appliance concerns. It is filled by reconciling,
// which at a start is done with everything.
type places struct {
	mu    sync.Mutex
	have  map[reconcile.Request]place
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the controller runs
}

// gather is how long events are gathered before an object is looked at: they come in
// bursts.
const gather = 200 * time.Millisecond

func (p *places) put(r reconcile.Request, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have == nil {
		p.have = map[reconcile.Request]place{}
	}
	p.have[r] = at
}

func (p *places) drop(r reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.have, r)
}

func (p *places) start(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = q
}

// wake has those looked at whom s concerns.
func (p *places) wake(s appliance.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == nil {
		return
	}
	for r, at := range p.have {
		if at.secret == s.Secret && (s.All || at.hardware == "" && s.Free || at.hardware != "" && at.hardware == s.Hardware) {
			p.queue.AddAfter(r, gather)
		}
	}
}
