package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// Use is what says whether a file is needed.
type Use interface {
	ListImages(ctx context.Context) ([]*workflow.Image, error)
	ActiveWorkflows(ctx context.Context) ([]*workflow.Workflow, error)
}

// Sweep deletes the files that no Image needs and no active workflow may read, and
// returns their digests. Nobody may be about to name one meanwhile.
//
// An attempt that runs was told the digest that its image had when it began, and
// nothing keeps that: while one runs that names an image by its name, all files stay.
func Sweep(ctx context.Context, use Use, files *image.Store) ([]string, error) {
	blobs, err := files.List()
	if err != nil || len(blobs) == 0 {
		return nil, err
	}
	// in this order: an attempt that begins after the workflows were read finds the
	// records that were read before
	images, err := use.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, i := range images {
		for _, digest := range named(i) {
			needed[digest] = true
		}
	}
	blobs = slices.DeleteFunc(blobs, func(b image.Blob) bool { return needed[b.Digest] })
	if len(blobs) == 0 {
		return nil, nil
	}
	active, err := use.ActiveWorkflows(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range active {
		blobs = slices.DeleteFunc(blobs, func(b image.Blob) bool { return needs(w, b.Digest) })
	}
	var gone []string
	for _, b := range blobs {
		if err := files.Delete(ctx, b.Digest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, err
		}
		gone = append(gone, b.Digest)
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
