package catalogue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/fetch"
	"github.com/rackstrap/rackstrap/workflow"
)

// Bounds of fetching.
const (
	// maxIdle is how many tries in a row may bring less than progress: a quarter of an
	// hour.
	maxIdle  = 20
	progress = 1 << 20
	// maxChanges is how often the file on the server may change under way.
	maxChanges = 5
	maxDelay   = time.Minute
)

// fetch brings the source of an image, and leaves it named in st: converting, or
// ready where the source is the one that was there before.
func (m *Manager) fetch(ctx context.Context, j *job, i *workflow.Image, st *workflow.ImageStatus) error {
	at := &place{c: m.fetches}
	if err := at.take(ctx); err != nil {
		return err
	}
	defer at.leave()
	st.State = workflow.ImageFetching
	if err := m.put(ctx, i, st, nil); err != nil {
		return err
	}
	j.set(func(p *workflow.ImageProgress) { p.State = workflow.ImageFetching })
	want, err := m.checksum(ctx, j, at, i)
	if err != nil {
		return err
	}
	p, err := m.c.Files.Partial(ctx, partialKey(i))
	if err != nil {
		return err
	}
	defer p.Close()
	src := fetch.Source{URL: i.Spec.URL, CA: i.Spec.CA, Checked: want != "" && !workflow.WeakChecksum(want)}
	for fresh := false; ; fresh = true {
		tries, err := m.get(ctx, j, at, src, p)
		if err != nil {
			return err
		}
		m.naming.RLock()
		blob, err := p.Keep(want, func(done int64) { j.set(func(p *workflow.ImageProgress) { p.Done = done }) })
		if err == nil {
			err = m.fetched(ctx, i, st, blob, want)
		}
		m.naming.RUnlock()
		if !errors.Is(err, image.ErrChecksum) || tries == 1 || fresh {
			return err
		}
		// It came in parts, and they may be of different files: once more in one go.
		if p, err = m.c.Files.Partial(ctx, partialKey(i)); err != nil {
			return err
		}
		defer p.Close()
	}
}

// fetched writes down that the source is here.
func (m *Manager) fetched(ctx context.Context, i *workflow.Image, st *workflow.ImageStatus, blob image.Blob, want string) error {
	st.Checksum, st.Fetched, st.State = want, m.c.Now(), workflow.ImageConverting
	if r := st.Renditions; len(r) > 0 && r[0].Source.Digest == blob.Digest && r[0].For == st.For && m.c.Files.Has(r[0].Digest) {
		r[0].Checksum = want
		st.Source, st.State = r[0].Source, workflow.ImageReady
		return m.put(ctx, i, st, event(hardware.ReasonImageReady, i, "the same file as before, sha256:"+blob.Digest))
	}
	st.Source = workflow.ImageFile{Digest: blob.Digest, Bytes: blob.Bytes}
	return m.put(ctx, i, st, warning(i, want, blob.Digest))
}

// warning is the event of a source that was compared with a weak checksum; nil for
// another one.
func warning(i *workflow.Image, checksum, digest string) *workflow.Event {
	if !workflow.WeakChecksum(checksum) {
		return nil
	}
	return event(hardware.ReasonWeakChecksum, i, fmt.Sprintf("it has %s, as wanted; from now on use sha256:%s", checksum, digest))
}

// get tries until the file is complete, and says how many tries it took.
func (m *Manager) get(ctx context.Context, j *job, at *place, src fetch.Source, p *image.Partial) (tries int, err error) {
	changes := 0
	err = m.try(ctx, j, at, p.Size, func() error {
		tries++
		err := m.c.Fetch.Get(ctx, src, p, func(done, total int64) {
			j.set(func(p *workflow.ImageProgress) { p.Done, p.Total, p.Message = done, total, "" })
		})
		var fe *fetch.Error
		if errors.As(err, &fe) && fe.Changed {
			if changes++; changes > maxChanges {
				return &fetch.Error{Text: fmt.Sprintf("%s, %d times", fe.Text, changes), Final: true}
			}
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		p.Remove() // what is half there takes room, and would be for nothing
		err = fmt.Errorf("%s: %w", shown(src.URL), err)
	}
	return tries, err
}

// checksum is what the source must be: as the spec says, or the list it names.
func (m *Manager) checksum(ctx context.Context, j *job, at *place, i *workflow.Image) (string, error) {
	list := i.Spec.Checksum
	if !strings.Contains(list, "://") {
		return list, nil
	}
	var sum string
	err := m.try(ctx, j, at, func() int64 { return 0 }, func() error {
		b, err := m.c.Fetch.Small(ctx, fetch.Source{URL: list, CA: i.Spec.CA}, fetch.MaxSums)
		if err != nil {
			return err
		}
		if sum, err = fetch.FindSum(b, i.Spec.URL); err != nil {
			return &fetch.Error{Text: err.Error(), Final: true}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", shown(list), err)
	}
	return sum, err
}

// Sum reads the list of checksums at a URL and returns what it says of the file at
// another one. It is asked by whoever may install, who may not reach by us what listens
// on this machine only.
func (m *Manager) Sum(ctx context.Context, list, file string) (string, error) {
	b, err := m.c.Fetch.Small(ctx, fetch.Source{URL: list, Strangers: true}, fetch.MaxSums)
	sum := ""
	if err == nil {
		sum, err = fetch.FindSum(b, file)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", shown(list), err)
	}
	return sum, nil
}

// try repeats step, with longer and longer pauses as long as size does not grow by
// much. Its place is another's during the pauses.
func (m *Manager) try(ctx context.Context, j *job, at *place, size func() int64, step func() error) error {
	for idle, best := 0, size(); ; {
		err := step()
		if err == nil || ctx.Err() != nil {
			return err
		}
		var fe *fetch.Error
		if full(err) || !errors.As(err, &fe) || fe.Final {
			return err
		}
		idle++
		switch now := size(); {
		case now >= best+progress:
			idle, best = 1, now
		case fe.Changed: // which is counted, and what was there is gone
			best = now
		}
		if idle >= maxIdle {
			return fmt.Errorf("given up after %d tries: %w", idle, err)
		}
		delay := max(min(time.Second<<(idle-1), maxDelay), fe.After)
		j.set(func(p *workflow.ImageProgress) {
			p.Message = fmt.Sprintf("%s; try %d in %s", fe.Text, idle+1, delay)
		})
		m.c.Log.Warn("image not fetched yet", "err", fe.Text, "again_in", delay)
		at.leave()
		if err := m.c.Wait(ctx, delay); err != nil {
			return err
		}
		if err := at.take(ctx); err != nil {
			return err
		}
	}
}

// place is one of those that there are; see fetchesAtOnce.
type place struct {
	c    chan struct{}
	held bool
}

// take waits for it: the ctx's error.
func (p *place) take(ctx context.Context) error {
	err := take(ctx, p.c)
	p.held = err == nil
	return err
}

// leave gives it to another.
func (p *place) leave() {
	if p.held {
		<-p.c
		p.held = false
	}
}
