package image

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"syscall"
)

const (
	// chunk is how much is read, hashed and written at a time.
	chunk = 1 << 20
	// step is how many bytes are written between looks at the free space.
	step = 64 << 20
)

// Put reads r to its end, makes the bytes durable, and returns their digest. want,
// if not empty, is sha256:<hex> or sha512:<hex> of the bytes. Nothing is kept on an
// error: ErrChecksum, ErrQuota, ErrNoSpace, the ctx's, or r's own. Bytes that are
// kept already are not kept twice. Memory does not depend on the size.
func (s *Store) Put(ctx context.Context, r io.Reader, want string) (Blob, error) {
	sum, other, err := hashes(want)
	if err != nil {
		return Blob{}, err
	}
	f, err := os.CreateTemp(s.dir, partial+"*")
	if err != nil {
		return Blob{}, err
	}
	u := &upload{s: s, ctx: ctx, f: f}
	defer u.end()
	w := io.MultiWriter(u, sum)
	if other != nil {
		w = io.MultiWriter(u, sum, other)
	}
	// The struct hides r's WriterTo, which might write all at once.
	if _, err := io.CopyBuffer(w, struct{ io.Reader }{r}, make([]byte, chunk)); err != nil {
		return Blob{}, s.explain(err, u.size)
	}
	b := Blob{Digest: hex.EncodeToString(sum.Sum(nil)), Bytes: u.size}
	if got := "sha256:" + b.Digest; strings.HasPrefix(want, "sha256:") && !strings.EqualFold(want, got) {
		return Blob{}, fmt.Errorf("image: %w: wanted %s, got %s", ErrChecksum, want, got)
	}
	if other != nil {
		if got := "sha512:" + hex.EncodeToString(other.Sum(nil)); !strings.EqualFold(want, got) {
			return Blob{}, fmt.Errorf("image: %w: wanted %s, got %s", ErrChecksum, want, got)
		}
	}
	if err := u.keep(b.Digest); err != nil {
		return Blob{}, s.explain(err, u.size)
	}
	return b, nil
}

// hashes are what runs along: SHA-256 for the name, and another one if want is of
// that.
func hashes(want string) (sum, other hash.Hash, err error) {
	alg, digits, _ := strings.Cut(want, ":")
	size := map[string]int{"sha256": sha256.Size, "sha512": sha512.Size}[alg]
	b, err := hex.DecodeString(digits)
	if want != "" && (size == 0 || err != nil || len(b) != size) {
		return nil, nil, fmt.Errorf("%.150q is no checksum (sha256:<64 hex digits> or sha512:<128 hex digits>)", want)
	}
	if alg == "sha512" {
		other = sha512.New()
	}
	return sha256.New(), other, nil
}

// upload is a file under way.
type upload struct {
	s     *Store
	ctx   context.Context
	f     *os.File
	size  int64
	until int64 // size at which the free space is looked at again
	kept  bool
}

// Write counts, checks the bounds and writes.
func (u *upload) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	if err := u.s.take(int64(len(p))); err != nil {
		return 0, err
	}
	u.size += int64(len(p))
	if u.size > u.until {
		if err := u.s.roomFor(step); err != nil {
			return 0, err
		}
		u.until = u.size + step
	}
	return u.f.Write(p)
}

// keep makes the upload the blob of that digest.
func (u *upload) keep(digest string) error {
	// CreateTemp's 0600 would keep the files from an operator's rsync.
	if err := errors.Join(u.f.Chmod(0o644), u.f.Sync()); err != nil {
		return err
	}
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	name := u.s.file(digest)
	if _, err := os.Stat(name); err == nil {
		return nil // end removes the second copy
	}
	if err := os.Rename(u.f.Name(), name); err != nil {
		return err
	}
	if err := syncDir(u.s.dir); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	u.kept = true
	return nil
}

// end removes what is not kept.
func (u *upload) end() {
	_ = u.f.Close() // synced, or of no use
	if u.kept {
		return
	}
	_ = os.Remove(u.f.Name()) // else the next start does it
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	u.s.used -= u.size
}

// take counts n bytes against the quota.
func (s *Store) take(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Quota > 0 && s.used+n > s.opts.Quota {
		return fmt.Errorf("images: %w: %s of %s (delete one, see `rackstrap image list`, or raise the quota)", ErrQuota, size(s.used), size(s.opts.Quota))
	}
	s.used += n
	return nil
}

// roomFor says whether n more bytes leave the reserve alone.
func (s *Store) roomFor(n int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return nil // the write itself will tell
	}
	free := int64(st.Bavail) * st.Bsize
	if s.opts.Reserve > 0 && free-n < s.opts.Reserve {
		return fmt.Errorf("%s: %w: %s free, of which %s are kept for the database (delete an image, see `rackstrap image list`, or make the file system larger)",
			s.dir, ErrNoSpace, size(free), size(s.opts.Reserve))
	}
	return nil
}

// explain says what to do about a full disk.
func (s *Store) explain(err error, after int64) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s: %w after %s (delete an image, see `rackstrap image list`, or make the file system larger): %w", s.dir, ErrNoSpace, size(after), err)
	}
	return err
}

// size prints bytes for people.
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
