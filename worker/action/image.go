package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/store/image/codec"
	"github.com/rackstrap/rackstrap/worker/action/partition"
	"github.com/rackstrap/rackstrap/workflow"
)

// imageWrite streams an image onto a disk.
func imageWrite(ctx context.Context, env Env, o workflow.ImageWrite) (Result, error) {
	return writeImage(ctx, env, o, usualPatience())
}

// writeImage touches the disk only after the image was found on the server,
// recognised, and not known to be too large.
func writeImage(ctx context.Context, env Env, o workflow.ImageWrite, p patience) (Result, error) {
	sum, err := codec.ParseChecksum(o.Checksum)
	if err != nil {
		return Result{}, untouched(permanent(err))
	}
	w, err := openImage(ctx, env, o, sum, p)
	if err != nil {
		return Result{}, untouched(err)
	}
	defer w.image.Close()
	began := time.Now()
	out, err := w.run(ctx)
	if err != nil {
		return out, classify(fmt.Errorf("image %s: %w", w.shown, err))
	}
	out.Checksum = w.image.Strong().String()
	env.Log.Info("image written, flushed and read back", "source_bytes", out.SourceBytes, "written_bytes", out.WrittenBytes, "took", took(began),
		"source_rate", rate(out.SourceBytes, began), "disk_rate", rate(out.WrittenBytes, began), "sha256", out.Checksum, "expected", orDefault(sum.String(), "nothing"))
	if sum.Weak() {
		out.Compared = sum.String()
		env.Log.Warn("the image was compared with a checksum that protects from accidents only", "checksum", out.Compared, "sha256", out.Checksum)
	}
	return out, nil
}

// openImage finds the image and its disk. It writes nothing.
func openImage(ctx context.Context, env Env, o workflow.ImageWrite, sum codec.Checksum, p patience) (*imageWriter, error) {
	format, err := codec.ParseFormat(o.Format)
	if err != nil {
		return nil, permanent(err)
	}
	u, err := imageURL(env.HTTPBase, o)
	if err != nil {
		return nil, err
	}
	client, err := httpClient(o)
	if err != nil {
		return nil, err
	}
	d, err := env.disk(o.Disk)
	if err != nil {
		return nil, err
	}
	if err := d.inUse(); err != nil {
		return nil, err
	}
	source, err := fetch(ctx, env.Log, client, u, !sum.IsZero(), p)
	if err != nil {
		return nil, err
	}
	image, err := codec.NewReader(source, codec.Options{Format: format, Size: source.size, Checksum: sum})
	if err != nil {
		return nil, classify(fmt.Errorf("image %s: %w", source.shown(), err))
	}
	if image.Format() == codec.Raw && source.size < 0 && sum.IsZero() {
		image.Close()
		return nil, permanentf("image %s: it is not compressed, the server does not say how long it is, and there is no checksum: nothing shows whether all of it came (set checksum:)", source.shown())
	}
	w := &imageWriter{env: env, disk: d, image: image, shown: source.shown(), size: max(source.size, 0), abort: func() { source.Close() }}
	env.Log.Info("writing image", "url", source.shown(), "format", string(image.Format()), "source_bytes", source.size, "disk", d.path, "disk_bytes", d.size)
	return w, nil
}

// classify marks what another attempt with the same image cannot mend. A wrong
// checksum or a truncated download may be the network's fault.
func classify(err error) error {
	if errors.Is(err, codec.ErrFormat) || errors.Is(err, codec.ErrLimit) || errors.Is(err, codec.ErrTrailing) {
		return permanent(err)
	}
	return err
}

// imageWriter is one image on its way to one disk.
type imageWriter struct {
	env   Env
	disk  disk
	image *codec.Reader
	shown string // where it comes from, without secrets
	size  int64  // of the source, 0 when unknown
	abort func() // ends the download
	dev   *device
	last  time.Time // of the last progress report
}

// run writes, verifies and lets the kernel see the result. Whenever it fails
// after the first write, it leaves a disk that cannot boot, and says so.
func (w *imageWriter) run(ctx context.Context) (Result, error) {
	out := Result{Disk: w.disk.path}
	dev, err := openDevice(w.disk.path)
	if err != nil {
		return out, untouched(err)
	}
	defer dev.Close()
	w.dev = dev
	writer := &diskWriter{dev: dev, moved: w.report, abort: w.abort, samples: newSampler()}
	if least := w.image.MinSize(); least > dev.size {
		return out, untouched(writer.tooLarge(least))
	}
	err = w.invalidate() // the system that was there must not boot half overwritten
	var size int64
	if err == nil {
		size, err = writer.copyFrom(ctx, w.image)
	}
	if err == nil {
		err = writer.finish()
	}
	if err == nil {
		err = w.complete(size)
	}
	if err == nil {
		err = writer.verify()
	}
	out.SourceBytes, out.WrittenBytes = w.image.SourceBytes(), size
	if err == nil {
		err = rescan(ctx, w.disk, dev)
	}
	if err != nil {
		return out, w.fail(err)
	}
	w.env.progress(Progress{Done: out.SourceBytes, Total: w.size, Written: size})
	out.Message = fmt.Sprintf("wrote %s to %s from %s of %s, flushed and read samples back",
		bytesText(size), w.disk.path, bytesText(out.SourceBytes), w.image.Format())
	return out, nil
}

// report passes progress on, at most four times a second.
func (w *imageWriter) report(written int64) {
	if now := time.Now(); now.Sub(w.last) >= 250*time.Millisecond {
		w.last = now
		w.env.progress(Progress{Done: w.image.SourceBytes(), Total: w.size, Written: written})
	}
}

// complete refuses an image that ends before its own last partition does: a file
// that was cut short on its way to the server downloads without a fault.
func (w *imageWriter) complete(size int64) error {
	w.sayPartitions()
	e, err := partition.Last(w.dev.layout())
	switch {
	case errors.Is(err, partition.ErrNone):
		return nil // one file system, or what the operator called raw
	case err != nil:
		w.env.Log.Warn("the image has a partition table that is not understood", "disk", w.disk.path, "error", err)
		return nil
	case e.End <= size:
		return nil
	}
	return fmt.Errorf("image ends at byte %d, its partition %d at %d: it was cut short (get it again; if its maker left off the end, add it: truncate -s %d IMAGE)",
		size, e.Number, e.End, e.End)
}

// sayPartitions puts the partition table of the image into the log.
func (w *imageWriter) sayPartitions() {
	t, err := partition.Read(w.dev.layout())
	if err != nil {
		return // complete says so where it matters
	}
	for _, e := range t.Entries {
		w.env.Log.Info("partition of the image", "scheme", string(t.Scheme), "number", e.Number, "start", e.Start, "bytes", e.End-e.Start, "label", e.Name)
	}
}

// took is the time since then, for the log.
func took(began time.Time) string { return time.Since(began).Round(time.Millisecond).String() }

// rate is n bytes over the time since then, for the log.
func rate(n int64, began time.Time) string {
	return fmt.Sprintf("%.1f MB/s", float64(n)/1e6/max(time.Since(began).Seconds(), 1e-3))
}

// invalidate removes both partition tables from the disk.
func (w *imageWriter) invalidate() error {
	ends := merge([]extent{{0, mib}, {w.dev.size - mib, mib}}, w.dev.size, w.dev.sector)
	for _, e := range ends {
		if err := w.dev.zero(e); err != nil {
			return err
		}
	}
	return w.dev.flush()
}

// fail makes sure that what was written cannot boot. ctx may be over by then.
func (w *imageWriter) fail(cause error) error {
	if err := w.invalidate(); err != nil {
		return fmt.Errorf("%w; the disk %s could not be made unbootable either: %w", cause, w.disk.path, err)
	}
	// Best effort: the kernel's idea of the partitions ends with this boot.
	_ = w.dev.ioctl(unix.BLKRRPART, nil)
	w.env.Log.Error("image was not written, the disk was made unbootable", "disk", w.disk.path, "error", cause)
	return fmt.Errorf("%w (the disk %s has no partition table now and cannot boot)", cause, w.disk.path)
}
