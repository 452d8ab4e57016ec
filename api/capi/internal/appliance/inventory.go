package appliance

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// Inventory remembers for a while which Hardware each Secret's token sees, so that
// many clusters and templates of one appliance do not list it each. It may be used
// by several goroutines.
type Inventory struct {
	mu   sync.Mutex
	seen map[ctrlclient.ObjectKey]*listing
}

type listing struct {
	mu  sync.Mutex // held while the appliance is asked
	app *Appliance
	at  time.Time
	all []hardware.Hardware
}

// Hardware is what the token sees, by name, without what no claim looks at. It was
// read no longer than age ago. Do not change it.
func (i *Inventory) Hardware(ctx context.Context, app *Appliance, age time.Duration) ([]hardware.Hardware, error) {
	i.mu.Lock()
	if i.seen == nil {
		i.seen = map[ctrlclient.ObjectKey]*listing{}
	}
	l := i.seen[app.Secret]
	if l == nil {
		l = &listing{}
		i.seen[app.Secret] = l
	}
	i.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.app == app && time.Since(l.at) < age { // another app: the Secret has changed
		return l.all, nil
	}
	var all []hardware.Hardware
	for h, err := range app.Client.Hardware.All(ctx, client.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, claimed(h))
	}
	slices.SortFunc(all, func(a, b hardware.Hardware) int { return strings.Compare(a.Meta.Name, b.Meta.Name) })
	// a record that changed while the pages were read may have come twice
	all = slices.CompactFunc(all, func(a, b hardware.Hardware) bool { return a.Meta.Name == b.Meta.Name })
	l.app, l.at, l.all = app, time.Now(), all
	return all, nil
}

// claimed is what claims look at, of a record of some 10 KiB.
func claimed(h *hardware.Hardware) hardware.Hardware {
	out := hardware.Hardware{Meta: h.Meta, Spec: hardware.Spec{Netboot: h.Spec.Netboot, Arch: h.Spec.Arch, Protect: h.Spec.Protect, Rack: h.Spec.Rack}, Status: h.Status}
	if f := h.Facts; f != nil {
		out.Facts = &hardware.Facts{Arch: f.Arch, CPUs: f.CPUs, MemoryBytes: f.MemoryBytes, Disks: slices.Clone(f.Disks), NICs: f.NICs}
		for i := range out.Facts.Disks {
			out.Facts.Disks[i].Layout = nil // the most of it, and no claim asks for it
		}
	}
	return out
}
