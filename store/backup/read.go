package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Bounds of what is read: an archive may come from anywhere.
const (
	maxManifest = 64 << 10
	maxKey      = 64 << 10
	// MaxDatabase bounds the database in an archive, in bytes.
	MaxDatabase = 64 << 30
)

// Errors of Open.
var (
	// ErrDamaged: the archive is cut short, altered, or none of ours.
	ErrDamaged = errors.New("the backup is damaged, or none of rackstrap's")
	// ErrPassphrase: the key in the archive is under another passphrase.
	ErrPassphrase = errors.New("the passphrase is not the one that the backup was made with")
)

// Opened is an archive that was read to its end: the database in it is whole and was
// checked. Close it.
type Opened struct {
	Manifest Manifest
	// Database is a file with the database.
	Database string
	key      []byte // encrypted
}

// Close removes what Open made.
func (o *Opened) Close() error {
	err := os.Remove(o.Database)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was moved to its place
	}
	return err
}

// Open reads an archive into a file in dir and checks everything that can be:
// ErrDamaged, the ctx's error, or that of the disk.
func Open(ctx context.Context, r io.Reader, dir string, check Check) (_ *Opened, err error) {
	z, err := zstd.NewReader(ctxReader{ctx, r}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return nil, damaged(err)
	}
	defer z.Close()
	f, err := os.CreateTemp(dir, ".restore-*")
	if err != nil {
		return nil, err
	}
	o := &Opened{Database: f.Name()}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = o.Close()
		}
	}()
	if err := o.read(ctx, tar.NewReader(z), f); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	layout, err := check(f.Name())
	if err != nil {
		return nil, err
	}
	if layout != o.Manifest.Layout {
		return nil, damaged(fmt.Errorf("its database has layout %d, the manifest says %d", layout, o.Manifest.Layout))
	}
	return o, nil
}

func (o *Opened) read(ctx context.Context, a *tar.Reader, f *os.File) error {
	sum := sha256.New()
	var bytesRead int64 = -1
	for n := 0; ; n++ {
		h, err := a.Next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF) && bytesRead >= 0:
			return o.compare(bytesRead, hex.EncodeToString(sum.Sum(nil)))
		case err != nil:
			return damaged(err)
		case n == 0 && h.Name != manifestName, n > 8:
			return damaged(fmt.Errorf("it begins with %.40q", h.Name))
		}
		switch h.Name {
		case manifestName:
			if err := o.manifest(io.LimitReader(a, maxManifest)); err != nil {
				return err
			}
		case keyName:
			if o.key, err = io.ReadAll(io.LimitReader(a, maxKey)); err != nil {
				return damaged(err)
			}
		case databaseName:
			if h.Size > MaxDatabase || h.Size != o.Manifest.Bytes {
				return damaged(fmt.Errorf("its database has %d bytes, the manifest says %d", h.Size, o.Manifest.Bytes))
			}
			if bytesRead, err = io.Copy(io.MultiWriter(onDisk{f}, sum), a); err != nil {
				var disk *diskError
				if errors.As(err, &disk) {
					return disk.err
				}
				return damaged(err)
			}
		}
	}
}

func (o *Opened) manifest(r io.Reader) error {
	if err := json.NewDecoder(r).Decode(&o.Manifest); err != nil {
		return damaged(err)
	}
	if o.Manifest.Format > Format {
		return fmt.Errorf("the backup has format %d, this rackstrap reads up to %d (use the rackstrap %s that wrote it, or a newer one)", o.Manifest.Format, Format, o.Manifest.Version)
	}
	if o.Manifest.Format < 1 {
		return damaged(errors.New("it has no format number"))
	}
	return nil
}

func (o *Opened) compare(n int64, sum string) error {
	switch {
	case n != o.Manifest.Bytes || sum != o.Manifest.SHA256:
		return damaged(fmt.Errorf("the database's sha256 is %s, the manifest says %s", sum, o.Manifest.SHA256))
	case o.Manifest.Key && len(o.key) == 0:
		return damaged(errors.New("the key is missing"))
	}
	return nil
}

// Key is the key file that is in the archive: ErrPassphrase, ErrDamaged; an error
// where the archive has none.
func (o *Opened) Key(passphrase string) ([]byte, error) {
	if !o.Manifest.Key {
		return nil, errors.New("the backup was made without the key")
	}
	id, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	id.SetMaxWorkFactor(22) // what takes longer to open was not made by us
	r, err := age.Decrypt(bytes.NewReader(o.key), id)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return nil, ErrPassphrase
	}
	if err != nil {
		return nil, damaged(err)
	}
	key, err := io.ReadAll(io.LimitReader(r, maxKey))
	if err != nil {
		return nil, damaged(err)
	}
	return key, nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// onDisk marks errors of the disk, which are not the archive's.
type onDisk struct{ f *os.File }

func (d onDisk) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	if err != nil {
		err = &diskError{err}
	}
	return n, err
}

type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
