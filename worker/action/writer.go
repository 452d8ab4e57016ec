package action

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"sync"
)

const (
	// writers are the writes in flight; more gain nothing at 4 MiB each.
	writers = 3
	// zeroRun bounds one command that writes zeros.
	zeroRun = 256 << 20
	// sampleCount blocks are read back at the end, besides the first.
	sampleCount = 16
)

// errTooLarge: the image does not fit. It is told from other errors because no
// further attempt can mend it.
var errTooLarge = errors.New("image is larger than the disk")

// diskWriter copies the bytes of a disk image to a device. The first block is
// kept back until everything else is on the medium: a disk whose writing was
// interrupted, by an error or by a power cut, has no partition table and
// cannot boot.
type diskWriter struct {
	dev     *device
	moved   func(written int64) // called after each block was read
	abort   func()              // ends a Read of the image that waits
	samples sampler

	first []byte // block 0, whole sectors
}

// job is something for a writer goroutine: data, or zeros in its place.
type job struct {
	at    extent
	data  []byte // a buffer to give back; nil for zeros
	whole []byte // the buffer that data is in
}

// copyFrom writes everything but the first block and returns the size of the
// image.
func (w *diskWriter) copyFrom(ctx context.Context, r io.Reader) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan job)
	free := make(chan []byte, writers+2)
	for range cap(free) {
		free <- alignedBuffer(blockSize)
	}
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for j := range jobs {
				if err := w.do(ctx, j); err != nil {
					cancel(err)
					w.abort()
				}
				if j.whole != nil {
					free <- j.whole
				}
			}
		})
	}
	size, err := w.split(ctx, r, jobs, free)
	close(jobs)
	group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return size, err
}

func (w *diskWriter) do(ctx context.Context, j job) error {
	if ctx.Err() != nil {
		return nil
	}
	if j.data == nil {
		return w.dev.zero(j.at)
	}
	return w.dev.writeAt(j.data, j.at.offset)
}

// split reads the image block by block and hands the blocks out. Blocks of
// zeros are joined and handed out as such.
func (w *diskWriter) split(ctx context.Context, r io.Reader, jobs chan<- job, free chan []byte) (int64, error) {
	var size int64
	var hole extent
	send := func(j job) error {
		select {
		case jobs <- j:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	flushHole := func() error {
		if hole.length == 0 {
			return nil
		}
		j := job{at: hole}
		hole = extent{}
		return send(j)
	}
	for {
		var buf []byte
		select {
		case buf = <-free:
		case <-ctx.Done():
			return size, context.Cause(ctx)
		}
		n, err := readBlock(r, buf)
		if err != nil && err != io.EOF && !errors.Is(err, errShortBlock) {
			return size, err
		}
		if n == 0 && size == 0 {
			return 0, errors.New("the image is empty")
		}
		if n == 0 {
			return size, flushHole()
		}
		at := extent{size, int64(n)}
		if size += int64(n); size > w.dev.size {
			return size, w.tooLarge(size)
		}
		data := w.pad(buf, n)
		at.length = int64(len(data))
		w.samples.see(at.offset, data)
		switch zero := firstNonZero(data) < 0; {
		case at.offset == 0:
			w.first = alignedBuffer(len(data))
			copy(w.first, data)
			free <- buf
		case zero && hole.end() == at.offset && hole.length+at.length <= zeroRun:
			hole.length += at.length
			free <- buf
		case zero:
			free <- buf
			if err := flushHole(); err != nil {
				return size, err
			}
			hole = at
		default:
			if err := flushHole(); err != nil {
				return size, err
			}
			if err := send(job{at: at, data: data, whole: buf}); err != nil {
				return size, err
			}
		}
		w.moved(size)
	}
}

// errShortBlock: the image ended within a block, as it may.
var errShortBlock = errors.New("short block")

// readBlock is io.ReadFull, but tells the end of the image from a broken
// connection, which may also be io.ErrUnexpectedEOF.
func readBlock(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) {
		k, err := r.Read(buf[n:])
		n += k
		if err == io.EOF && n > 0 {
			return n, errShortBlock
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (w *diskWriter) tooLarge(atLeast int64) error {
	return permanentf("%w: %s has %s, the image at least %s (use a larger disk or a smaller image)",
		errTooLarge, w.dev.path, bytesText(w.dev.size), bytesText(atLeast))
}

// pad returns the first n bytes of buf, with zeros up to whole sectors.
func (w *diskWriter) pad(buf []byte, n int) []byte {
	whole := (n + w.dev.sector - 1) / w.dev.sector * w.dev.sector
	clear(buf[n:whole])
	return buf[:whole]
}

// finish makes the image bootable: everything else is on the medium before the
// first block is.
func (w *diskWriter) finish() error {
	if err := w.dev.flush(); err != nil {
		return err
	}
	if err := w.dev.writeAt(w.first, 0); err != nil {
		return err
	}
	return w.dev.flush()
}

// verify reads the first block and the samples back from the medium.
func (w *diskWriter) verify() error {
	w.dev.dropCache()
	whole := alignedBuffer(blockSize)
	for _, s := range append([]sample{w.samples.of(0, w.first)}, w.samples.chosen...) {
		buf := whole[:s.length]
		if _, err := w.dev.f.ReadAt(buf, s.offset); err != nil {
			return fmt.Errorf("read %s back at byte %d: %w", w.dev.path, s.offset, err)
		}
		if w.samples.of(s.offset, buf) != s {
			return fmt.Errorf("disk %s does not return what was written at byte %d (the disk is broken: replace it)", w.dev.path, s.offset)
		}
	}
	return nil
}

// sample is the hash of one block of the image.
type sample struct {
	offset int64
	length int
	sum    uint64
}

// sampler keeps sampleCount blocks of a stream whose length is not known, each
// with the same probability (reservoir sampling), and hashes only those. What a
// broken disk returns is no forgery: a hash that costs next to nothing will do,
// where SHA-256 took as long as the decoder.
type sampler struct {
	seed   maphash.Seed
	seen   int
	chosen []sample
}

func newSampler() sampler { return sampler{seed: maphash.MakeSeed()} }

func (s *sampler) of(offset int64, data []byte) sample {
	return sample{offset, len(data), maphash.Bytes(s.seed, data)}
}

func (s *sampler) see(offset int64, data []byte) {
	s.seen++
	if len(s.chosen) < sampleCount {
		s.chosen = append(s.chosen, s.of(offset, data))
		return
	}
	if n := rand.IntN(s.seen); n < sampleCount {
		s.chosen[n] = s.of(offset, data)
	}
}
