package appliance

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Place is where an object was last seen to be in an appliance.
type Place struct {
	// Secret is that of the Appliance.
	Secret client.ObjectKey
	// Hardware is empty while it has none.
	Hardware string
}

// Places knows whom an event of an appliance concerns. It is filled by reconciling,
// which at a start is done with everything. It may be used by several goroutines.
type Places struct {
	mu    sync.Mutex
	have  map[reconcile.Request]Place
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the controller runs
}

// gather is how long events are gathered before an object is looked at: they come in
// bursts.
const gather = 200 * time.Millisecond

// Put says where the object of a request is.
func (p *Places) Put(r reconcile.Request, at Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have == nil {
		p.have = map[reconcile.Request]Place{}
	}
	p.have[r] = at
}

// Drop forgets it.
func (p *Places) Drop(r reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.have, r)
}

// Source has the controller that watches it look at whom Wake finds.
func (p *Places) Source() source.Source {
	return source.TypedFunc[reconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queue = q
		return nil
	})
}

// Wake has those looked at whom s concerns.
func (p *Places) Wake(s Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == nil {
		return
	}
	for r, at := range p.have {
		if at.Secret == s.Secret && (s.All || at.Hardware == "" && s.Free || at.Hardware != "" && at.Hardware == s.Hardware) {
			p.queue.AddAfter(r, gather)
		}
	}
}
