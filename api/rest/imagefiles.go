package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// ImageUse is what says whether a kept file is needed.
type ImageUse interface {
	ListImages(ctx context.Context) ([]*workflow.Image, error)
	ActiveWorkflows(ctx context.Context) ([]*workflow.Workflow, error)
}

// SweepImages deletes the files that no Image names and no active workflow needs,
// and returns their digests. Nobody may be about to name one meanwhile.
//
// An attempt that runs was told the digest that its image had when it began, and
// nothing keeps that: while one runs that names an image by its name, all files stay.
func SweepImages(ctx context.Context, use ImageUse, blobs Blobs) ([]string, error) {
	kept, err := blobs.List(ctx)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	// in this order: an attempt that begins after the workflows were read finds the
	// records that were read before
	images, err := use.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, i := range images {
		named[strings.ToLower(i.Spec.Blob)] = true
	}
	kept = slices.DeleteFunc(kept, func(digest string) bool { return named[digest] })
	if len(kept) == 0 {
		return nil, nil
	}
	active, err := use.ActiveWorkflows(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range active {
		kept = slices.DeleteFunc(kept, func(digest string) bool { return needs(w, digest) })
	}
	var gone []string
	for _, digest := range kept {
		if err := blobs.Delete(ctx, digest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, err
		}
		gone = append(gone, digest)
	}
	return gone, nil
}

// needs reports whether the workflow may yet read a file that no Image names.
func needs(w *workflow.Workflow, digest string) bool {
	for _, a := range w.Status.Actions {
		if a.Kind != workflow.KindImageWrite || a.State.Ended() {
			continue
		}
		if strings.Contains(strings.ToLower(string(a.With)), digest) {
			return true // by URL or checksum
		}
		var o workflow.ImageWrite
		byName := json.Unmarshal(a.With, &o) != nil || hardware.ValidName(o.Image) == nil
		if byName && slices.ContainsFunc(a.Attempts, func(t workflow.Attempt) bool { return !t.State.Ended() }) {
			return true
		}
	}
	return false
}

// imageFiles keeps the files in step with the records.
type imageFiles struct {
	deps Deps
	// naming is held shared from before a file is looked for or kept until its record
	// is written, so that it does not go in between. Nobody waits to hold it alone.
	naming sync.RWMutex
}

// write writes a record that names a file, if that file is there, and deletes what
// is needed no more.
func (f *imageFiles) write(ctx context.Context, i *workflow.Image, put func(context.Context, *workflow.Image) error) error {
	defer f.sweep(ctx)
	f.naming.RLock()
	defer f.naming.RUnlock()
	if i.Spec.Blob != "" {
		kept, err := f.deps.Blobs.List(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(kept, strings.ToLower(i.Spec.Blob)) {
			return &hardware.Invalid{Kind: "image", Name: i.Meta.Name, Errors: []hardware.FieldError{{
				Field:  "spec.blob",
				Detail: fmt.Sprintf("%s is no file that is kept here (upload it: `rackstrap image add %s FILE`)", i.Spec.Blob, i.Meta.Name),
			}}}
		}
	}
	return put(ctx, i)
}

// remove deletes a record, and what is needed no more.
func (f *imageFiles) remove(ctx context.Context, name string, rev uint64) error {
	err := f.deps.Records.DeleteImage(ctx, name, rev)
	if err == nil {
		f.sweep(ctx)
	}
	return err
}

// sweep does SweepImages, unless a file is being uploaded or named: then whoever
// does that sweeps afterwards. That a file stays is logged, and no error of the
// request.
func (f *imageFiles) sweep(ctx context.Context) {
	if !f.naming.TryLock() {
		return
	}
	defer f.naming.Unlock()
	gone, err := SweepImages(context.WithoutCancel(ctx), f.deps.Records, f.deps.Blobs)
	if err != nil {
		f.deps.Log.Warn("image files that nobody needs are not deleted", "err", err)
	}
	for _, digest := range gone {
		f.deps.Log.Info("image file deleted: nobody needs it", "digest", digest)
	}
}
