package module

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Plugger loads modules for the devices that are there and for those that come.
type Plugger struct {
	loader *Loader
	// failed is told of each module that the kernel refused.
	failed func(error)

	mu      sync.Mutex
	seen    map[string]bool // modaliases
	queue   [ranks][]string // module names that wait for a loader, by rank
	aside   []string        // module names that nobody waits for
	loaders int             // goroutines that load
	held    bool            // only rank 0 is taken
	last    time.Time       // of the last change
	wake    chan struct{}   // closed and replaced at each change
}

// parallel is how many modules are loaded at once. Most of the time they wait for
// hardware, not for a processor.
const parallel = 6

// NewPlugger uses the loader; failed may be called from several goroutines.
func NewPlugger(l *Loader, failed func(error)) *Plugger {
	return &Plugger{loader: l, failed: failed, seen: map[string]bool{}, last: time.Now(), wake: make(chan struct{})}
}

// Coldplug loads modules for all devices below sys (normally /sys/devices), in the
// background, and returns how many kinds there are.
func (p *Plugger) Coldplug(sys string) int {
	aliases := Modaliases(sys)
	sort.SliceStable(aliases, func(i, j int) bool { return rank(aliases[i]) < rank(aliases[j]) })
	for _, a := range aliases {
		p.Plug(a)
	}
	return len(aliases)
}

const ranks = 3

// Hold keeps back everything but network cards, until Release.
func (p *Plugger) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// Release loads what was held back.
func (p *Plugger) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.held = false
		for range parallel {
			p.start()
		}
	}
}

// rank is the order in which devices get their drivers. Network cards (PCI class
// 02, and what may be one behind virtio) come first: the first thing to be said to
// the appliance must not wait for a slow disk controller. What belongs to the
// processor and the board comes last: nobody waits for the self-tests of ciphers.
func rank(modalias string) int {
	bus, _, _ := strings.Cut(modalias, ":")
	switch {
	case bus == "virtio", bus == "vmbus", bus == "xen", bus == "pci" && (strings.Contains(modalias, "bc02sc") || strings.HasPrefix(modalias, "pci:v00001AF4")):
		return 0
	case bus == "cpu", bus == "acpi", bus == "dmi", bus == "platform", bus == "serio", bus == "input":
		return 2
	}
	return 1
}

// Modaliases lists what the devices below dir call themselves, each once.
func Modaliases(dir string) []string {
	var out []string
	seen := map[string]bool{}
	// A device may vanish while we look; what cannot be read is left out.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "modalias" {
			return nil //nolint:nilerr // see above
		}
		b, err := os.ReadFile(path)
		if a := strings.TrimSpace(string(b)); err == nil && a != "" && !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
		return nil
	})
	return out
}

// aside reports whether a device is a BMC: a board can have one that does not answer,
// and then its driver waits for many seconds. Their names are from ACPI (IPI0001), from
// SMBIOS (structure 38) and from the PCI class 0c07.
func aside(modalias string) bool {
	bus, id, _ := strings.Cut(modalias, ":")
	switch bus {
	case "acpi":
		return strings.HasPrefix(id, "IPI0001")
	case "platform":
		return strings.HasPrefix(id, "dmi-ipmi-")
	case "pci":
		return strings.Contains(id, "bc0Csc07")
	}
	return false
}

// Aside are the modules for BMCs, which the Plugger leaves to whoever wants them.
func (p *Plugger) Aside() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.aside)
}

// Plug loads the modules for one modalias, in the background, once.
func (p *Plugger) Plug(modalias string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[modalias] {
		return
	}
	p.seen[modalias] = true
	names := p.loader.Match(modalias)
	if len(names) == 0 {
		return
	}
	if aside(modalias) {
		p.aside = append(p.aside, names...)
		return
	}
	r := rank(modalias)
	p.queue[r] = append(p.queue[r], names...)
	p.start()
}

// start is called with the lock held.
func (p *Plugger) start() {
	p.changed()
	if p.loaders < parallel {
		p.loaders++
		go p.load()
	}
}

// load works until the queue is empty.
func (p *Plugger) load() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		name, ok := p.take()
		if !ok {
			p.loaders--
			p.changed()
			return
		}
		p.mu.Unlock()
		err := p.loader.load(name)
		if err != nil {
			p.failed(err)
		}
		p.mu.Lock()
		p.changed()
	}
}

func (p *Plugger) take() (string, bool) {
	for r := range p.queue {
		if p.held && r > 0 {
			break
		}
		if q := p.queue[r]; len(q) > 0 {
			p.queue[r] = q[1:]
			return q[0], true
		}
	}
	return "", false
}

// Touch notes that the hardware changed: a device appeared, say.
func (p *Plugger) Touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed()
}

// changed is called with the lock held.
func (p *Plugger) changed() {
	p.last = time.Now()
	close(p.wake)
	p.wake = make(chan struct{})
}

// Settle waits until no module is being loaded and nothing has changed for quiet,
// and reports true; or false when ctx ends first.
func (p *Plugger) Settle(ctx context.Context, quiet time.Duration) bool {
	for {
		p.mu.Lock()
		busy, rest, wake := p.busy(), quiet-time.Since(p.last), p.wake
		p.mu.Unlock()
		if !busy && rest <= 0 {
			return true
		}
		var timer <-chan time.Time
		if !busy {
			timer = time.After(rest)
		}
		select {
		case <-ctx.Done():
			return false
		case <-wake:
		case <-timer:
		}
	}
}

// busy reports whether a module is being loaded or waits to be.
func (p *Plugger) busy() bool {
	n := p.loaders
	for _, q := range p.queue {
		n += len(q)
	}
	return n > 0
}

// Until waits until cond holds, asking again at each change, and reports true; or
// false when ctx ends first.
func (p *Plugger) Until(ctx context.Context, cond func() bool) bool {
	for {
		p.mu.Lock()
		wake := p.wake
		p.mu.Unlock()
		if cond() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-wake:
		}
	}
}
