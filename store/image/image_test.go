package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
)

func open(t testing.TB, opts Options) *Store {
	t.Helper()
	if opts.Reserve == 0 {
		opts.Reserve = -1 // the disk of whoever runs the tests is their own affair
	}
	s, err := Open(filepath.Join(t.TempDir(), "images"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sum256(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
func sum512(b []byte) string { h := sha512.Sum512(b); return hex.EncodeToString(h[:]) }

// files lists what is in the directory, uploads too.
func files(t testing.TB, s *Store) string {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestPut(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	ctx := t.Context()
	for name, b := range map[string][]byte{"empty": {}, "small": []byte("image"), "chunks": bytes.Repeat([]byte("0123456789"), 350_001)} {
		for _, want := range []string{"", "sha256:" + sum256(b), "sha512:" + sum512(b), "sha256:" + strings.ToUpper(sum256(b))} {
			blob, err := s.Put(ctx, iotest.HalfReader(bytes.NewReader(b)), want)
			if err != nil || blob.Digest != sum256(b) || blob.Bytes != int64(len(b)) {
				t.Fatalf("%s: %+v, %v", name, blob, err)
			}
		}
		f, err := s.Open(ctx, sum256(b))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: read back %d bytes of %d, %v", name, len(got), len(b), err)
		}
	}
	blobs, err := s.List()
	if err != nil || len(blobs) != 3 || s.Used() != 5+3_500_010 {
		t.Errorf("%d blobs of %d bytes, %v", len(blobs), s.Used(), err)
	}
	if strings.Contains(files(t, s), partial) {
		t.Errorf("uploads are left: %s", files(t, s))
	}
	again, err := Open(s.dir, Options{})
	if err != nil || again.Used() != s.Used() {
		t.Errorf("opened again: %d bytes of %d, %v", again.Used(), s.Used(), err)
	}
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Quota: 3 << 20})
	if _, err := s.Put(t.Context(), strings.NewReader("kept"), ""); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("connection reset")
	for name, tc := range map[string]struct {
		ctx  context.Context
		r    io.Reader
		want string
		err  error
		text string
	}{
		"sha256":     {t.Context(), strings.NewReader("altered"), "sha256:" + sum256([]byte("true")), ErrChecksum, sum256([]byte("altered"))},
		"sha512":     {t.Context(), strings.NewReader("altered"), "sha512:" + sum512([]byte("true")), ErrChecksum, sum512([]byte("altered"))},
		"md5":        {t.Context(), strings.NewReader("altered"), "md5:" + strings.Repeat("0", 32), ErrChecksum, "got md5:"},
		"truncated":  {t.Context(), strings.NewReader("tru"), "sha256:" + sum256([]byte("true")), ErrChecksum, ""},
		"quota":      {t.Context(), bytes.NewReader(make([]byte, 4<<20)), "", ErrQuota, "raise images.quotaGiB"},
		"broken":     {t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), "", broken, ""},
		"cancelled":  {cancelled, strings.NewReader("never"), "", context.Canceled, ""},
		"no sum":     {t.Context(), strings.NewReader("x"), "md5:00", nil, "is no checksum"},
		"short sum":  {t.Context(), strings.NewReader("x"), "sha256:00", nil, "is no checksum"},
		"no hex sum": {t.Context(), strings.NewReader("x"), "sha256:" + strings.Repeat("x", 64), nil, "is no checksum"},
	} {
		blob, err := s.Put(tc.ctx, tc.r, tc.want)
		if err == nil || (tc.err != nil && !errors.Is(err, tc.err)) || !strings.Contains(err.Error(), tc.text) || blob != (Blob{}) {
			t.Errorf("%s: %+v, %v", name, blob, err)
		}
		if got := files(t, s); got != sum256([]byte("kept")) || s.Used() != 4 {
			t.Errorf("%s: left %s, %d bytes", name, got, s.Used())
		}
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Reserve: 1 << 60})
	_, err := s.Put(t.Context(), strings.NewReader("x"), "")
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "rackstrap image list") || !strings.Contains(err.Error(), s.dir) {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	blob, err := s.Put(t.Context(), strings.NewReader("x"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.dir), "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../secret", "/etc/passwd", strings.ToUpper(blob.Digest), blob.Digest + "/", blob.Digest[:63], blob.Digest + "\x00", "..%2fsecret", sum256([]byte("other"))} {
		if f, err := s.Open(t.Context(), name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v, %v", name, f, err)
		}
		if err := s.Delete(t.Context(), name); !errors.Is(err, ErrNotFound) {
			t.Errorf("delete %q: %v", name, err)
		}
	}
	f, err := s.Open(t.Context(), blob.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := s.Delete(t.Context(), blob.Digest); err != nil || s.Used() != 0 {
		t.Errorf("delete: %v, %d bytes", err, s.Used())
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "x" {
		t.Errorf("a reader is cut off by the delete: %q, %v", b, err)
	}
	if _, err := s.Open(t.Context(), blob.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	if _, err := s.Put(t.Context(), strings.NewReader("x"), ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{partial + "1", partial + "2", "README"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(s.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, again); got != sum256([]byte("x"))+" README" || again.Used() != 1 {
		t.Errorf("left %s, %d bytes", got, again.Used())
	}
}

// TestConcurrent: many uploads of the same and of other bytes, with deletes.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			b := []byte(fmt.Sprint(i % 4))
			for range 5 {
				if _, err := s.Put(t.Context(), bytes.NewReader(b), ""); err != nil {
					t.Error(err)
				}
				if err := s.Delete(t.Context(), sum256(b)); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	blobs, err := s.List()
	if err != nil || int64(len(blobs)) != s.Used() {
		t.Errorf("%d blobs of a byte, %d counted, %v", len(blobs), s.Used(), err)
	}
}

// zeros is n bytes that no memory holds.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n)
	clear(p[:n])
	z.n -= n
	return int(n), nil
}

func TestConstantMemory(t *testing.T) {
	s := open(t, Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := s.Put(t.Context(), &zeros{64 << 20}, ""); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("allocated %d bytes for 64 MiB", got)
	}
}

func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal("needs root: a small file system is mounted")
		}
		t.Skip("needs root: a small file system is mounted")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal(err)
		}
		t.Skipf("mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(dir, Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(t.Context(), &zeros{8 << 20}, "")
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "delete an image") {
		t.Error(err)
	}
	if got := files(t, s); got != "" || s.Used() != 0 {
		t.Errorf("left %s, %d bytes", got, s.Used())
	}
	if _, err := s.Put(t.Context(), &zeros{1 << 20}, ""); err != nil {
		t.Errorf("a smaller one does not fit: %v", err)
	}
}
