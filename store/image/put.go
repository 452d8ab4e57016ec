package image

import (
	"context"
	"crypto/md5"
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
// if not empty, is sha256:<hex>, sha512:<hex> or md5:<hex> of the bytes. Nothing is kept on an
// error: ErrChecksum, ErrQuota, ErrNoSpace, the ctx's, or r's own. Bytes that are
// kept already are not kept twice. Memory does not depend on the size.
func (s *Store) Put(ctx context.Context, r io.Reader, want string) (Blob, error) {
	u, err := s.Create(ctx, want)
	if err != nil {
		return Blob{}, err
	}
	defer u.Close()
	// The struct hides r's WriterTo, which might write all at once.
	if _, err := io.CopyBuffer(u, struct{ io.Reader }{r}, make([]byte, chunk)); err != nil {
		return Blob{}, err
	}
	return u.Keep()
}

// Create begins a file that becomes a blob when it is complete. want is as in Put.
func (s *Store) Create(ctx context.Context, want string) (*Upload, error) {
	sums, err := newSums(want)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.dir, partial+"*")
	if err != nil {
		return nil, err
	}
	return &Upload{grower: grower{s: s, ctx: ctx, f: f}, sums: sums}, nil
}

// Upload is a file under way. It is not for concurrent use, but for ReadAt.
type Upload struct {
	grower
	sums *sums
	kept bool
}

// Write appends: ErrQuota, ErrNoSpace, or the ctx's error.
func (u *Upload) Write(p []byte) (int, error) {
	n, err := u.grower.Write(p)
	u.sums.write(p[:n])
	return n, err
}

// ReadAt reads what was written.
func (u *Upload) ReadAt(p []byte, off int64) (int, error) { return u.f.ReadAt(p, off) }

// Keep makes the file a blob: ErrChecksum, ErrNoSpace.
func (u *Upload) Keep() (Blob, error) {
	digest, err := u.sums.check()
	if err != nil {
		return Blob{}, err
	}
	u.kept, err = u.s.keep(u.f, digest)
	if err != nil {
		return Blob{}, u.s.explain(err, u.size)
	}
	return Blob{Digest: digest, Bytes: u.size}, nil
}

// Close removes what was not kept. It may be called again.
func (u *Upload) Close() {
	_ = u.f.Close() // synced, or of no use
	if !u.kept {
		u.remove()
		u.kept = true
	}
}

// sums are the hashes that run along: SHA-256 for the name, and another one if want
// is of that.
type sums struct {
	want  string
	sum   hash.Hash
	other hash.Hash // may be nil
	alg   string    // of other
}

func newSums(want string) (*sums, error) {
	alg, digits, _ := strings.Cut(want, ":")
	size := map[string]int{"sha256": sha256.Size, "sha512": sha512.Size, "md5": md5.Size}[alg]
	b, err := hex.DecodeString(digits)
	if want != "" && (size == 0 || err != nil || len(b) != size) {
		return nil, fmt.Errorf("%.150q is no checksum (sha256:<64 hex digits> or sha512:<128 hex digits>)", want)
	}
	s := &sums{want: strings.ToLower(want), sum: sha256.New()}
	switch alg {
	case "sha512":
		s.other = sha512.New()
	case "md5":
		s.other = md5.New()
	}
	s.alg = alg
	return s, nil
}

func (s *sums) write(p []byte) {
	s.sum.Write(p)
	if s.other != nil {
		s.other.Write(p)
	}
}

// check is the SHA-256, if all is as it was announced: ErrChecksum.
func (s *sums) check() (digest string, err error) {
	digest = hex.EncodeToString(s.sum.Sum(nil))
	got := "sha256:" + digest
	if s.other != nil {
		got = s.alg + ":" + hex.EncodeToString(s.other.Sum(nil))
	}
	if s.want != "" && s.want != got {
		return "", fmt.Errorf("image: %w: wanted %s, got %s", ErrChecksum, s.want, got)
	}
	return digest, nil
}

// grower is a file that grows within the bounds.
type grower struct {
	s     *Store
	ctx   context.Context
	f     *os.File
	size  int64
	until int64 // size at which the free space is looked at again
}

// Write counts, checks the bounds and writes.
func (g *grower) Write(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	if err := g.s.take(int64(len(p))); err != nil {
		return 0, err
	}
	if g.size+int64(len(p)) > g.until {
		if err := g.s.roomFor(step); err != nil {
			g.s.give(int64(len(p)))
			return 0, err
		}
		g.until = g.size + int64(len(p)) + step
	}
	n, err := g.f.Write(p)
	g.size += int64(n)
	if n < len(p) {
		g.s.give(int64(len(p) - n))
	}
	if err != nil {
		err = g.s.explain(err, g.size)
	}
	return n, err
}

// remove deletes the file and gives its room back.
func (g *grower) remove() {
	_ = os.Remove(g.f.Name()) // else the next start does it
	g.s.give(g.size)
}

// keep makes a complete file the blob of that digest; false where that is there
// already.
func (s *Store) keep(f *os.File, digest string) (bool, error) {
	// CreateTemp's 0600 would keep the files from an operator's rsync.
	if err := errors.Join(f.Chmod(0o644), f.Sync()); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.file(digest)
	if _, err := os.Stat(name); err == nil {
		return false, nil
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return false, err
	}
	if err := s.sync(s.dir); err != nil {
		return false, errors.Join(err, os.Remove(name))
	}
	return true, nil
}

// take counts n bytes against the quota.
func (s *Store) take(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Quota > 0 && s.used+n > s.opts.Quota {
		return fmt.Errorf("images: %w: %s of %s (delete one, see `rackstrap image list`, or raise images.quotaGiB)", ErrQuota, size(s.used), size(s.opts.Quota))
	}
	s.used += n
	return nil
}

func (s *Store) give(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// Room says whether n more bytes fit: ErrQuota, ErrNoSpace. It is for sizes that are
// announced; nothing is reserved.
func (s *Store) Room(n int64) error {
	if used := s.Used(); s.opts.Quota > 0 && n > s.opts.Quota-used {
		return fmt.Errorf("images: %w: it needs %s, and %s of %s are taken (delete one, see `rackstrap image list`, or raise images.quotaGiB)", ErrQuota, size(n), size(used), size(s.opts.Quota))
	}
	return s.roomFor(n)
}

// roomFor says whether n more bytes leave the reserve alone.
func (s *Store) roomFor(n int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return nil // the write itself will tell
	}
	free := int64(st.Bavail) * st.Bsize
	if s.opts.Reserve > 0 && free-n < s.opts.Reserve {
		return fmt.Errorf("%s: %w: %s free, of which %s are kept for the database, and %s are needed (delete an image, see `rackstrap image list`, or make the file system larger)",
			s.dir, ErrNoSpace, size(free), size(s.opts.Reserve), size(n))
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
