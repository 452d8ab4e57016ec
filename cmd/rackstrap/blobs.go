package main

import (
	"context"
	"errors"
	"io"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/store/image"
)

// blobs gives REST the image files, in its own words for what can go wrong.
type blobs struct{ *image.Store }

// Put implements rest.Blobs.
func (b blobs) Put(ctx context.Context, r io.Reader, checksum string) (string, int64, error) {
	kept, err := b.Store.Put(ctx, r, checksum)
	switch {
	case errors.Is(err, image.ErrChecksum):
		err = refused{err, rest.ErrChecksum}
	case errors.Is(err, image.ErrQuota), errors.Is(err, image.ErrNoSpace):
		err = refused{err, rest.ErrFull}
	}
	return kept.Digest, kept.Bytes, err
}

// refused is an error of the images, told in its own words, that is also one of
// REST's.
type refused struct {
	error
	rest error
}

// Unwrap is both.
func (r refused) Unwrap() []error { return []error{r.error, r.rest} }
