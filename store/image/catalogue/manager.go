// Package catalogue keeps the files of images in step with their records: it fetches
// each image once, checks it, packs it for workers, and deletes what nobody needs.
package catalogue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/fetch"
	"github.com/rackstrap/rackstrap/workflow"
)

// Records is the store.
type Records interface {
	ListImages(ctx context.Context) ([]*workflow.Image, error)
	ImageByName(ctx context.Context, name string) (*workflow.Image, error)
	// SetImageStatus writes the status, which is ours alone, and the event if there is
	// one: workflow.ErrNotFound.
	SetImageStatus(ctx context.Context, i *workflow.Image, st workflow.ImageStatus, ev *workflow.Event) error
	// ImageChanges yields nil at once and after each change of a record.
	ImageChanges(ctx context.Context) iter.Seq[error]
	ActiveWorkflows(ctx context.Context) ([]*workflow.Workflow, error)
}

// Config is what a Manager is made of.
type Config struct {
	Records Records
	Files   *image.Store
	Fetch   *fetch.Client
	Now     func() time.Time
	Log     *slog.Logger
	// Wait waits between tries; time passes where nil.
	Wait func(ctx context.Context, d time.Duration) error
}

// How much is done at once: packing takes processor time, fetching the uplink's.
const (
	fetchesAtOnce = 3
	packsAtOnce   = 1
)

// Manager is the one writer of image statuses. Its methods may be called at once.
type Manager struct {
	c Config
	// naming is held shared from before a file is kept or looked for until a record or
	// status names it, so that it does not go in between. Nobody waits to hold it alone.
	naming  sync.RWMutex
	wake    chan struct{}
	fetches chan struct{}
	packs   chan struct{}

	mu   sync.Mutex
	jobs map[string]*job // by uid
}

// job is the work on one image.
type job struct {
	key    string
	cancel context.CancelFunc

	mu       sync.Mutex
	progress workflow.ImageProgress
}

func (j *job) set(change func(p *workflow.ImageProgress)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.progress)
}

// New makes a Manager; it fetches while Run runs.
func New(c Config) *Manager {
	if c.Wait == nil {
		c.Wait = wait
	}
	return &Manager{
		c: c, wake: make(chan struct{}, 1), jobs: map[string]*job{},
		fetches: make(chan struct{}, fetchesAtOnce), packs: make(chan struct{}, packsAtOnce),
	}
}

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

// Run does what the records ask for until ctx ends. It returns nil then, and the
// store's error when changes cannot be followed.
func (m *Manager) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broken := make(chan error, 1)
	all.Go(func() {
		for err := range m.c.Records.ImageChanges(ctx) {
			if err != nil {
				broken <- err
				return
			}
			m.kick()
		}
	})
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("follow the images: %w", err)
		case <-m.wake:
		case <-retry.C:
		}
		if err := m.look(ctx, &all); err != nil && ctx.Err() == nil {
			m.c.Log.Error("images not looked at", "err", err)
			retry.Reset(5 * time.Second)
		}
	}
}

// kick makes Run look at the records.
func (m *Manager) kick() {
	select {
	case m.wake <- struct{}{}:
	default: // it will
	}
}

// look starts what is to be done and stops what is not wanted any more.
func (m *Manager) look(ctx context.Context, all *sync.WaitGroup) error {
	images, err := m.c.Records.ListImages(ctx)
	if err != nil {
		return err
	}
	wanted, partials := map[string]string{}, map[string]bool{}
	for _, i := range images {
		if decide(i, m.c.Files.Has) == nothing {
			continue
		}
		wanted[i.Meta.UID] = i.Spec.Key()
		partials[partialKey(i)] = true
		m.begin(ctx, all, i)
	}
	m.mu.Lock()
	for uid, j := range m.jobs {
		if wanted[uid] != j.key {
			j.cancel() // at its end we look again
		}
	}
	m.mu.Unlock()
	return m.c.Files.SweepPartials(func(key string) bool { return partials[key] || m.fetching(key) })
}

// fetching reports whether a job writes to that partial file.
func (m *Manager) fetching(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, j := range m.jobs {
		if partialName(uid, j.key) == key {
			return true
		}
	}
	return false
}

// begin starts a job for the image, unless it has one.
func (m *Manager) begin(ctx context.Context, all *sync.WaitGroup, i *workflow.Image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[i.Meta.UID] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	j := &job{key: i.Spec.Key(), cancel: cancel, progress: workflow.ImageProgress{State: workflow.ImageWaiting}}
	m.jobs[i.Meta.UID] = j
	all.Go(func() {
		defer cancel()
		again := m.work(ctx, j, i.Meta.Name)
		m.mu.Lock()
		delete(m.jobs, i.Meta.UID)
		m.mu.Unlock()
		m.sweep(ctx)
		if again && m.c.Wait(ctx, 5*time.Second) != nil {
			return
		}
		m.kick()
	})
}

// Progress is how far the work on the image of that uid is; false where none is done.
func (m *Manager) Progress(uid string) (workflow.ImageProgress, bool) {
	m.mu.Lock()
	j := m.jobs[uid]
	m.mu.Unlock()
	if j == nil {
		return workflow.ImageProgress{}, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.progress, true
}

func partialKey(i *workflow.Image) string { return partialName(i.Meta.UID, i.Spec.Key()) }

func partialName(uid, key string) string {
	sum := sha256.Sum256([]byte(uid + "/" + key))
	return hex.EncodeToString(sum[:16])
}

// event is one of the appliance: it is about no machine.
func event(why hardware.Reason, i *workflow.Image, detail string) *workflow.Event {
	return &workflow.Event{Reason: why, Detail: "image " + i.Meta.Name + ": " + detail}
}
