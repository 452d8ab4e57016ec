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
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/rackstrap/rackstrap/store"
)

// Format is the version of the archive's form.
const Format = 1

// MinPassphrase is the least length of a passphrase, in bytes.
const MinPassphrase = 12

// The names in the archive.
const (
	manifestName = "manifest.json"
	databaseName = "rackstrap.db"
	keyName      = "seal.key.age"
)

// Manifest is the first file of an archive.
type Manifest struct {
	Format int `json:"format"`
	// Version of the program that wrote it.
	Version string    `json:"version"`
	Created time.Time `json:"created"`
	// Layout of the database.
	Layout int `json:"layout"`
	// Bytes and SHA256 of the database.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Key says that the key file is in the archive, under a passphrase.
	Key bool `json:"key"`
}

// Check reads a database file from end to end and returns its layout: bolt.Check.
type Check func(path string) (layout int, err error)

// Options of Take.
type Options struct {
	Version string
	Now     time.Time
	// Dir is where the copy of the database is made and checked before it is sent.
	Dir   string
	Check Check
	// KeyFile is taken into the archive where Passphrase is not empty.
	KeyFile    string
	Passphrase string
}

// Taken is a backup that was made and checked, and waits to be sent. Close it.
type Taken struct {
	Manifest Manifest
	file     *os.File
	key      []byte // encrypted
}

// Close removes the copy.
func (t *Taken) Close() error { return errors.Join(t.file.Close(), os.Remove(t.file.Name())) }

// Take copies the database while it is in use and reads the copy from end to end.
func Take(ctx context.Context, src store.Backuper, o Options) (_ *Taken, err error) {
	if o.Passphrase != "" && len(o.Passphrase) < MinPassphrase {
		return nil, fmt.Errorf("the passphrase has %d bytes, wanted %d or more (make one: openssl rand -base64 24)", len(o.Passphrase), MinPassphrase)
	}
	f, err := os.CreateTemp(o.Dir, ".backup-*")
	if err != nil {
		return nil, err
	}
	t := &Taken{file: f}
	defer func() {
		if err != nil {
			_ = t.Close()
		}
	}()
	sum := sha256.New()
	n, err := src.Backup(ctx, io.MultiWriter(f, sum))
	if err != nil {
		return nil, err
	}
	layout, err := o.Check(f.Name())
	if err != nil {
		return nil, err
	}
	t.Manifest = Manifest{
		Format: Format, Version: o.Version, Created: o.Now.UTC().Truncate(time.Second), Layout: layout,
		Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Key: o.Passphrase != "",
	}
	if o.Passphrase != "" {
		if t.key, err = lockKey(o.KeyFile, o.Passphrase); err != nil {
			return nil, err
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return t, err
}

func lockKey(path, passphrase string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, r)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(key)
	err = errors.Join(err, w.Close()) // which writes the end
	return out.Bytes(), err
}

// WriteTo sends the archive.
func (t *Taken) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	z, err := zstd.NewWriter(c, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return 0, err
	}
	a := tar.NewWriter(z)
	put := func(name string, size int64, r io.Reader) error {
		h := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: t.Manifest.Created, Format: tar.FormatPAX}
		if err := a.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(a, r)
		return err
	}
	manifest, err := json.MarshalIndent(t.Manifest, "", "  ")
	if err != nil {
		return 0, err
	}
	err = put(manifestName, int64(len(manifest)), bytes.NewReader(manifest))
	if err == nil && t.key != nil {
		err = put(keyName, int64(len(t.key)), bytes.NewReader(t.key))
	}
	if err == nil {
		err = put(databaseName, t.Manifest.Bytes, t.file)
	}
	return c.n, errors.Join(err, a.Close(), z.Close())
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
