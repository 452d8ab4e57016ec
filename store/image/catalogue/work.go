package catalogue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// work brings one image to ready or failed. again: the store could not be written,
// or somebody stopped it.
func (m *Manager) work(ctx context.Context, j *job, name string) (again bool) {
	i, err := m.c.Records.ImageByName(ctx, name) // it may be done since somebody looked
	if err != nil || i.Spec.Key() != j.key {
		return err != nil && !errors.Is(err, workflow.ErrNotFound)
	}
	do := decide(i, m.c.Files.Has)
	if do == nothing {
		return false
	}
	if do == forget {
		return m.put(ctx, i, &workflow.ImageStatus{}, nil) != nil && ctx.Err() == nil
	}
	st := i.Current()
	st.For, st.Message = j.key, ""
	st.Renditions = slices.DeleteFunc(st.Renditions, func(r workflow.ImageRendition) bool { return !m.c.Files.Has(r.Digest) })
	err = m.steps(ctx, j, i, &st, do)
	switch {
	case ctx.Err() != nil, errors.Is(err, workflow.ErrNotFound):
		return false // the daemon stops, or the record has changed
	case err == nil:
		m.c.Log.Info("image ready", "image", i.Meta.Name, "source", "sha256:"+st.Source.Digest, "disk_bytes", st.DiskBytes)
		return false
	case errors.As(err, new(storeError)):
		m.c.Log.Error("image status not written", "image", i.Meta.Name, "err", err)
		return true
	}
	if st.State == workflow.ImageConverting {
		st.Source, st.Checksum = workflow.ImageFile{}, "" // the renditions, if any, are of an earlier one
	}
	st.State, st.Message = workflow.ImageFailed, hardware.PlainText(err.Error(), 1000)
	m.c.Log.Warn("image failed", "image", i.Meta.Name, "reason", hardware.ReasonImageFailed, "err", st.Message)
	err = m.c.Records.SetImageStatus(ctx, i, st, event(hardware.ReasonImageFailed, i, st.Message))
	return err != nil && !errors.Is(err, workflow.ErrNotFound)
}

// storeError is the store's: the image is not at fault.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// put writes the status.
func (m *Manager) put(ctx context.Context, i *workflow.Image, st *workflow.ImageStatus, ev *workflow.Event) error {
	if err := m.c.Records.SetImageStatus(ctx, i, *st, ev); err != nil {
		return storeError{err}
	}
	return nil
}

func (m *Manager) steps(ctx context.Context, j *job, i *workflow.Image, st *workflow.ImageStatus, do todo) error {
	switch do {
	case lost:
		return errors.New("its uploaded file is not on this disk any more: upload it again")
	case getIt:
		if err := m.fetch(ctx, j, i, st); err != nil {
			return err
		}
		if st.State == workflow.ImageReady { // the same bytes as before
			return nil
		}
	case packIt:
		if i.Spec.Blob != "" {
			st.Source = workflow.ImageFile{Digest: strings.ToLower(i.Spec.Blob), Bytes: i.Spec.Bytes}
			st.Checksum, st.Fetched = i.Spec.Checksum, m.c.Now()
		}
	}
	return m.pack(ctx, j, i, st)
}

// pack checks the source, makes its rendition, and says that it is ready.
func (m *Manager) pack(ctx context.Context, j *job, i *workflow.Image, st *workflow.ImageStatus) error {
	if err := take(ctx, m.packs); err != nil {
		return err
	}
	defer func() { <-m.packs }()
	j.set(func(p *workflow.ImageProgress) {
		*p = workflow.ImageProgress{State: workflow.ImageConverting, Total: st.Source.Bytes}
	})
	m.naming.RLock()
	defer m.naming.RUnlock()
	if st.State != workflow.ImageConverting {
		st.State = workflow.ImageConverting
		if err := m.put(ctx, i, st, warning(i, st.Checksum, st.Source.Digest)); err != nil {
			return err
		}
	}
	out, err := convert(ctx, m.c.Files, st.Source, i.Spec.Format, func(done, total int64) {
		j.set(func(p *workflow.ImageProgress) { p.Done, p.Total = done, total })
	})
	if err != nil {
		return err
	}
	st.Source.Format, st.DiskBytes = out.format, out.disk
	st.Renditions = []workflow.ImageRendition{{ImageFile: out.rendition, Source: st.Source, Checksum: st.Checksum, For: st.For, Arch: i.Spec.Architecture()}}
	st.State = workflow.ImageReady
	from := "uploaded"
	if i.Spec.URL != "" {
		from = "from " + shown(i.Spec.URL)
	}
	ready := event(hardware.ReasonImageReady, i, fmt.Sprintf("%s, sha256:%s", from, st.Source.Digest))
	ready.Bytes = st.Source.Bytes
	return m.put(ctx, i, st, ready)
}

// shown is a URL without its query, which may be secret.
func shown(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// take waits for a place.
func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// full reports whether err is about room, which another try does not make.
func full(err error) bool {
	return errors.Is(err, image.ErrQuota) || errors.Is(err, image.ErrNoSpace)
}
