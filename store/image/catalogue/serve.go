package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Room says whether a file of that size fits now: image.ErrQuota, ErrNoSpace.
func (m *Manager) Room(ctx context.Context, bytes int64) error {
	m.sweep(ctx) // room that an ended workflow held
	return m.c.Files.Room(bytes)
}

// Upload keeps what r has until io.EOF as the source of the image: it sets spec.blob
// and spec.bytes and calls write, which writes the record. want, if not empty, is
// sha256:<hex>, sha512:<hex> or md5:<hex> of the bytes. Nothing is kept on an error:
// image.ErrChecksum, ErrQuota, ErrNoSpace, *hardware.Invalid for what is no image,
// or the error of r or write.
func (m *Manager) Upload(ctx context.Context, i *workflow.Image, r io.Reader, want string, write func(context.Context) error) error {
	m.sweep(ctx) // room that an ended workflow held
	err := m.upload(ctx, i, r, want, write)
	m.sweep(ctx)
	m.kick()
	return err
}

func (m *Manager) upload(ctx context.Context, i *workflow.Image, r io.Reader, want string, write func(context.Context) error) error {
	m.naming.RLock()
	defer m.naming.RUnlock()
	blob, err := m.c.Files.Put(ctx, r, want)
	if err != nil {
		return err
	}
	if err := inspect(ctx, m.c.Files, blob, i.Spec.Format); err != nil {
		return &hardware.Invalid{Kind: "image", Name: i.Meta.Name, Errors: []hardware.FieldError{{Field: "file", Detail: err.Error()}}}
	}
	i.Spec.URL, i.Spec.Direct, i.Spec.CA = "", false, ""
	i.Spec.Blob, i.Spec.Bytes = blob.Digest, blob.Bytes
	if err := write(ctx); err != nil {
		return err
	}
	// The same file again, because the one that was here is lost.
	now, err := m.c.Records.ImageByName(ctx, i.Meta.Name)
	if err != nil || now.Current().State != workflow.ImageFailed {
		return err
	}
	st := now.Current()
	st.State, st.Message = workflow.ImageWaiting, ""
	return m.c.Records.SetImageStatus(ctx, now, st, nil)
}

// Write calls write, which creates, changes or deletes the record of that name. blob,
// if not empty, is the uploaded file that the record names, and must be here, or be
// the one that the record names already: else *hardware.Invalid.
func (m *Manager) Write(ctx context.Context, name, blob string, write func(context.Context) error) error {
	err := m.write(ctx, name, blob, write)
	m.sweep(ctx)
	m.kick()
	return err
}

func (m *Manager) write(ctx context.Context, name, blob string, write func(context.Context) error) error {
	m.naming.RLock()
	defer m.naming.RUnlock()
	if blob != "" && !m.c.Files.Has(strings.ToLower(blob)) {
		now, err := m.c.Records.ImageByName(ctx, name)
		if err != nil && !errors.Is(err, workflow.ErrNotFound) {
			return err
		}
		if err != nil || now.Spec.Blob != blob { // its source may be gone: it has renditions
			return &hardware.Invalid{Kind: "image", Name: name, Errors: []hardware.FieldError{{
				Field: "spec.blob", Detail: fmt.Sprintf("%.70s is no file that is kept here (upload it: `rackstrap image add %s FILE`)", blob, name),
			}}}
		}
	}
	return write(ctx)
}

// Fetch asks for an image again: its URL may have another file now, or what was
// wrong is mended. What workers can fetch of it stays until then. *hardware.Invalid
// where there is nothing to fetch, workflow.ErrNotFound.
func (m *Manager) Fetch(ctx context.Context, name string) error {
	i, err := m.c.Records.ImageByName(ctx, name)
	if err != nil {
		return err
	}
	st := i.Current()
	refuse := func(format string, args ...any) error {
		c := hardware.NewChecker("image", name)
		c.Addf("spec.url", format, args...)
		return c.Err()
	}
	switch {
	case i.Spec.Direct:
		return refuse("is fetched by the workers themselves (spec.direct)")
	case i.Spec.URL == "" && st.State != workflow.ImageFailed:
		return refuse("is empty: the image was uploaded (upload another file: `rackstrap image add %s FILE`)", name)
	case !st.State.Ended():
		return nil // it is on its way
	}
	st.State, st.Message, st.For = workflow.ImageWaiting, "", i.Spec.Key()
	if err := m.c.Records.SetImageStatus(ctx, i, st, nil); err != nil {
		return err
	}
	m.kick()
	return nil
}

// sweep deletes the files that nobody needs, unless one is being kept or named:
// whoever does that sweeps afterwards. That a file stays does no harm.
func (m *Manager) sweep(ctx context.Context) {
	if ctx = context.WithoutCancel(ctx); !m.naming.TryLock() {
		return
	}
	defer m.naming.Unlock()
	gone, err := Sweep(ctx, m.c.Records, m.c.Files)
	if err != nil {
		m.c.Log.Warn("image files that nobody needs are not deleted", "err", err)
	}
	for _, digest := range gone {
		m.c.Log.Info("image file deleted: nobody needs it", "digest", digest)
	}
}
