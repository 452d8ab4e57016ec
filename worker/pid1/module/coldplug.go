package module

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
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

	slots chan struct{}

	mu     sync.Mutex
	seen   map[string]bool // modaliases
	active int             // modaliases in work
	last   time.Time       // of the last change
	wake   chan struct{}   // closed and replaced at each change
}

// parallel is how many modules are loaded at once. Most of the time they wait for
// hardware, not for a processor.
const parallel = 16

// NewPlugger uses the loader; failed may be called from several goroutines.
func NewPlugger(l *Loader, failed func(error)) *Plugger {
	return &Plugger{
		loader: l, failed: failed, slots: make(chan struct{}, parallel),
		seen: map[string]bool{}, last: time.Now(), wake: make(chan struct{}),
	}
}

// Coldplug loads modules for all devices below sys (normally /sys/devices) and
// returns how many there are. Network cards come first: the first thing to be said
// to the appliance must not wait for a slow disk controller.
func (p *Plugger) Coldplug(sys string) int {
	aliases := Modaliases(sys)
	sort.SliceStable(aliases, func(i, j int) bool { return urgent(aliases[i]) && !urgent(aliases[j]) })
	for _, a := range aliases {
		p.Plug(a)
	}
	return len(aliases)
}

// urgent reports whether the device is a network card (PCI class 02) or a virtio
// device, which may be one.
func urgent(modalias string) bool {
	return strings.HasPrefix(modalias, "virtio:") || strings.HasPrefix(modalias, "pci:v00001AF4") ||
		(strings.HasPrefix(modalias, "pci:") && strings.Contains(modalias, "bc02sc"))
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

// Plug loads the modules for one modalias, in the background, once.
func (p *Plugger) Plug(modalias string) {
	p.mu.Lock()
	if p.seen[modalias] {
		p.mu.Unlock()
		return
	}
	p.seen[modalias] = true
	p.mu.Unlock()
	names := p.loader.Match(modalias)
	if len(names) == 0 {
		return
	}
	p.change(1)
	go func() {
		p.slots <- struct{}{}
		defer func() {
			<-p.slots
			p.change(-1)
		}()
		for _, n := range names {
			if err := p.loader.load(n, 0); err != nil {
				p.failed(err)
			}
		}
	}()
}

// Touch notes that the hardware changed: a device appeared, say.
func (p *Plugger) Touch() { p.change(0) }

func (p *Plugger) change(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active += by
	p.last = time.Now()
	close(p.wake)
	p.wake = make(chan struct{})
}

// Settle waits until no module is being loaded and nothing has changed for quiet,
// and reports true; or false when ctx ends first.
func (p *Plugger) Settle(ctx context.Context, quiet time.Duration) bool {
	for {
		p.mu.Lock()
		active, rest, wake := p.active, quiet-time.Since(p.last), p.wake
		p.mu.Unlock()
		if active == 0 && rest <= 0 {
			return true
		}
		var timer <-chan time.Time
		if active == 0 {
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
