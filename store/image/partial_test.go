package image

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

const keyA, keyB = "aa11", "bb22"

func partialOf(t *testing.T, s *Store, key string) *Partial {
	t.Helper()
	p, err := s.Partial(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, p *Partial, n int) {
	t.Helper()
	if _, err := p.Write(bytes.Repeat([]byte("x"), n)); err != nil {
		t.Fatal(err)
	}
}

// A directory that cannot be made durable costs the file, and not its room for ever.
func TestDirectoryNotSynced(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir(), Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("input/output error")
	s.sync = func(string) error { return broken }
	p := partialOf(t, s, keyA)
	write(t, p, 100)
	if _, err := p.Keep("", func(int64) {}); !errors.Is(err, broken) {
		t.Error(err)
	}
	p.Close()
	if _, err := s.Put(t.Context(), strings.NewReader("upload"), ""); !errors.Is(err, broken) {
		t.Error(err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) > 0 || s.Used() != 0 {
		t.Errorf("%d bytes are counted, there is %v, %v", s.Used(), entries, err)
	}
	s.sync = syncDir
	p = partialOf(t, s, keyA)
	write(t, p, 7)
	if _, err := p.Keep("", func(int64) {}); err != nil || s.Used() != 7 {
		t.Errorf("once more: %v, %d bytes are counted", err, s.Used())
	}
}

func TestPartialKeep(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	whole := bytes.Repeat([]byte("x"), 3<<20)
	for _, want := range []string{"", "sha256:" + sum256(whole), "SHA512:" + sum512(whole)} {
		want = strings.ToLower(want)
		p := partialOf(t, s, keyA)
		if err := p.Begin("first"); err != nil {
			t.Fatal(err)
		}
		write(t, p, 100)
		if err := p.Begin("second"); err != nil || p.Size() != 0 || p.Mark() != "second" {
			t.Fatalf("%v, %d bytes of %q", err, p.Size(), p.Mark())
		}
		write(t, p, 1<<20)
		write(t, p, 2<<20)
		last := int64(0)
		b, err := p.Keep(want, func(done int64) { last = done })
		if err != nil || b != (Blob{sum256(whole), 3 << 20}) || last != b.Bytes {
			t.Errorf("%s: %+v, %v", want, b, err)
		}
		p.Close() // as deferred
	}
	if got := files(t, s); got != sum256(whole) || s.Used() != 3<<20 {
		t.Errorf("left %s, %d bytes", got, s.Used())
	}
	p := partialOf(t, s, keyA)
	write(t, p, 5)
	if _, err := p.Keep("sha256:"+sum256(whole), func(int64) {}); !errors.Is(err, ErrChecksum) {
		t.Error(err)
	}
	if got := files(t, s); got != sum256(whole) || s.Used() != 3<<20 {
		t.Errorf("after other bytes: left %s, %d bytes", got, s.Used())
	}
}

// TestPartialRestart: what was made durable is there after a crash, and no more.
func TestPartialRestart(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	p, err := s.Partial(ctx, keyA)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Begin("v1"); err != nil {
		t.Fatal(err)
	}
	write(t, p, step+1)
	write(t, p, 1000)
	// a crash: nobody closes it
	s, err = Open(s.dir, Options{Reserve: -1})
	if err != nil || s.Used() != step+1001 {
		t.Fatalf("%d bytes, %v", s.Used(), err)
	}
	if again := partialOf(t, s, keyA); again.Size() != step+1 || again.Mark() != "v1" || s.Used() != step+1 {
		t.Errorf("after a crash %d bytes of %q, %d are counted", again.Size(), again.Mark(), s.Used())
	}
	// a clean stop: the daemon's ctx ends, then it is closed
	p, err = s.Partial(ctx, keyA)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p, 1000)
	cancel()
	p.Close()
	if again := partialOf(t, s, keyA); again.Size() != step+1001 {
		t.Errorf("after a stop %d bytes", again.Size())
	}
	// a mark that was broken on the disk
	if err := os.WriteFile(p.name+marked, []byte(`{"mark":"v1","synced":-7`), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := partialOf(t, s, keyA); again.Size() != 0 || again.Mark() != "" || s.Used() != 0 {
		t.Errorf("with a broken mark %d bytes of %q, %d are counted", again.Size(), again.Mark(), s.Used())
	}
}

func TestPartialBounds(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Quota: 1 << 20})
	p := partialOf(t, s, keyA)
	write(t, p, 1<<19)
	if err := p.Room(1 << 19); err != nil {
		t.Error(err)
	}
	for _, n := range []int64{1<<19 + 1, 1 << 62} {
		if err := p.Room(n); !errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "raise images.quotaGiB") {
			t.Errorf("%d more: %v", n, err)
		}
	}
	if _, err := p.Write(make([]byte, 1<<20)); !errors.Is(err, ErrQuota) {
		t.Error(err)
	}
	if err := open(t, Options{Reserve: 1 << 60}).Room(1); !errors.Is(err, ErrNoSpace) {
		t.Error(err)
	}
	for _, key := range []string{"", "..", "../x", "zz", strings.Repeat("a", 66)} {
		if _, err := s.Partial(t.Context(), key); err == nil {
			t.Errorf("%q is a key", key)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := s.Partial(cancelled, keyB)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Close()
	p.Close()
	if err := s.SweepPartials(func(key string) bool { return key == keyA }); err != nil {
		t.Error(err)
	}
	if got := files(t, s); got != fetching+keyA {
		t.Errorf("left %s", got)
	}
	if err := s.SweepPartials(func(string) bool { return false }); err != nil || files(t, s) != "" || s.Used() != 0 {
		t.Errorf("left %s, %d bytes, %v", files(t, s), s.Used(), err)
	}
}
