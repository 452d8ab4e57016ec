package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
)

// blobAdapter is the image files as REST sees them.
type blobAdapter struct{ s *image.Store }

var _ rest.Blobs = blobAdapter{}

// Put implements rest.Blobs.
func (b blobAdapter) Put(ctx context.Context, r io.Reader, checksum string) (string, int64, error) {
	blob, err := b.s.Put(ctx, r, checksum)
	switch {
	case errors.Is(err, image.ErrChecksum):
		c := hardware.NewChecker("image", "")
		c.Add("checksum", err)
		return "", 0, c.Err()
	case errors.Is(err, image.ErrNoSpace), errors.Is(err, image.ErrQuota):
		return "", 0, fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	return blob.Digest, blob.Bytes, err
}

// List implements rest.Blobs.
func (b blobAdapter) List(context.Context) ([]string, error) {
	all, err := b.s.List()
	out := make([]string, len(all))
	for i, blob := range all {
		out[i] = blob.Digest
	}
	return out, err
}

// Delete implements rest.Blobs.
func (b blobAdapter) Delete(ctx context.Context, digest string) error { return b.s.Delete(ctx, digest) }

// sweepBlobs deletes the image files that nobody needs: a crash between a file and
// its record left them. Nobody uploads yet. Files that stay do no harm.
func sweepBlobs(ctx context.Context, use rest.ImageUse, blobs *image.Store, log *slog.Logger) {
	gone, err := rest.SweepImages(ctx, use, blobAdapter{blobs})
	if err != nil {
		log.Warn("image files that nobody needs are not deleted", "err", err)
	}
	if len(gone) > 0 {
		log.Info("image files deleted: nobody needs them", "digests", gone)
	}
}
