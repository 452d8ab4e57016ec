// Package image keeps operating system images as files: one blob a file, named
// after the SHA-256 of its bytes, so that a name can never mean other bytes.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Errors of Store.
var (
	// ErrNotFound: there is no such blob. It is an fs.ErrNotExist, as servers of files
	// expect.
	ErrNotFound = fmt.Errorf("no such image file: %w", fs.ErrNotExist)
	// ErrChecksum: the bytes are not those that were announced.
	ErrChecksum error = altered("checksum differs")
	// ErrQuota: the images together would be larger than they may be.
	ErrQuota error = noRoom("image quota is used up")
	// ErrNoSpace: the file system is full, or nearly.
	ErrNoSpace error = noRoom("no space left for images")
)

// noRoom and altered tell what they are to packages that do not know this one.
type (
	noRoom  string
	altered string
)

func (e noRoom) Error() string  { return string(e) }
func (e altered) Error() string { return string(e) }

// NoRoom is true.
func (e noRoom) NoRoom() bool { return true }

// Altered is true.
func (e altered) Altered() bool { return true }

// DefaultReserve is what uploads leave free of the file system, because the
// database is on it too.
const DefaultReserve = 512 << 20

// Options of Open. The zero value has the defaults.
type Options struct {
	// Quota bounds all blobs together, in bytes; 0 is none.
	Quota int64
	// Reserve is how many bytes of the file system uploads leave free;
	// DefaultReserve where 0, none where negative.
	Reserve int64
	// Log is told of leftovers that were removed; discarded where nil.
	Log *slog.Logger
}

// Blob is one kept file.
type Blob struct {
	// Digest is the SHA-256 in lower-case hex.
	Digest string
	Bytes  int64
}

// Store is a directory of blobs. All methods may be called concurrently.
type Store struct {
	dir  string
	opts Options
	sync func(dir string) error // syncDir

	mu   sync.Mutex
	used int64 // blobs, and files under way
}

// partial begins the names of uploads under way.
const partial = ".upload-"

// Open opens the directory, makes it if it is not there, and removes what uploads
// left behind that a crash cut short. A directory has one Store at a time.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Reserve == 0 {
		opts.Reserve = DefaultReserve
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, sync: syncDir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if key, ok := strings.CutPrefix(e.Name(), fetching); ok && !strings.Contains(key, ".") {
			if st, err := e.Info(); err == nil {
				s.used += st.Size()
			}
		}
		if strings.HasPrefix(e.Name(), partial) {
			opts.Log.Info("removed an upload that was cut short", "file", filepath.Join(dir, e.Name()))
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	blobs, err := s.List()
	for _, b := range blobs {
		s.used += b.Bytes
	}
	return s, err
}

// List lists the blobs, by digest.
func (s *Store) List() ([]Blob, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []Blob
	for _, e := range entries {
		if !validDigest(e.Name()) {
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Blob{Digest: e.Name(), Bytes: st.Size()})
	}
	slices.SortFunc(out, func(a, b Blob) int { return strings.Compare(a.Digest, b.Digest) })
	return out, nil
}

// Open opens a blob for reading: ErrNotFound, also for what is no digest. A blob
// that is deleted while it is open can be read to its end.
func (s *Store) Open(ctx context.Context, digest string) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !validDigest(digest) {
		return nil, fmt.Errorf("%.70q: %w (a digest is 64 hex digits)", digest, ErrNotFound)
	}
	f, err := os.Open(s.file(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", digest, ErrNotFound)
	}
	return f, err
}

// Has reports whether a blob of that digest is kept.
func (s *Store) Has(digest string) bool {
	if !validDigest(digest) {
		return false
	}
	_, err := os.Stat(s.file(digest))
	return err == nil
}

// Delete removes a blob: ErrNotFound.
func (s *Store) Delete(ctx context.Context, digest string) error {
	f, err := s.Open(ctx, digest)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(s.file(digest)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w", digest, ErrNotFound)
		}
		return err
	}
	s.used -= st.Size()
	return s.sync(s.dir)
}

// Used is how many bytes blobs and running uploads take.
func (s *Store) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *Store) file(digest string) string { return filepath.Join(s.dir, digest) }

// validDigest keeps every other name out of the file system.
func validDigest(d string) bool {
	b, err := hex.DecodeString(d)
	return err == nil && len(b) == sha256.Size && d == strings.ToLower(d)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
