package catalogue_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/catalogue"
	"github.com/rackstrap/rackstrap/store/image/codec"
	"github.com/rackstrap/rackstrap/store/image/fetch"
	"github.com/rackstrap/rackstrap/workflow"
)

// rig is the manager over a real store and real files, and a server of images.
type rig struct {
	t     *testing.T
	dir   string
	db    *store.DB
	files *image.Store
	m     *catalogue.Manager
	stop  func()
	srv   *httptest.Server
	quota int64

	mu     sync.Mutex
	has    map[string]http.HandlerFunc // by path
	asked  []string                    // paths and ranges
	waits  []time.Duration
	cursor uint64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t, dir: t.TempDir(), has: map[string]http.HandlerFunc{}}
	kv, err := bolt.Open(filepath.Join(g.dir, "db"), bolt.Options{})
	g.must(err)
	t.Cleanup(func() { _ = kv.Close() })
	g.db, err = store.Open(t.Context(), kv, filepath.Join(g.dir, "key"), store.Options{})
	g.must(err)
	g.srv = httptest.NewServer(g)
	t.Cleanup(g.srv.Close)
	g.start()
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *rig) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// start is the daemon's: the files are opened and the manager runs. wait is what
// happens between tries; no time passes without it.
func (g *rig) start(wait ...func(context.Context) error) {
	g.t.Helper()
	var err error
	g.files, err = image.Open(filepath.Join(g.dir, "images"), image.Options{Quota: g.quota, Reserve: -1})
	g.must(err)
	f, err := fetch.New(fetch.Options{})
	g.must(err)
	g.m = catalogue.New(catalogue.Config{
		Records: g.db, Files: g.files, Fetch: f, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Wait: func(ctx context.Context, d time.Duration) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.waits = append(g.waits, d)
			g.mu.Unlock()
			defer g.mu.Lock()
			for _, w := range wait {
				if err := w(ctx); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.m.Run(ctx) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			g.t.Error(err)
		}
	})
}

// ServeHTTP serves what the test says.
func (g *rig) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	h := g.has[r.URL.Path]
	g.asked = append(g.asked, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	g.mu.Unlock()
	if h == nil {
		http.NotFound(w, r)
		return
	}
	h(w, r)
}

// serve makes the server have a file.
func (g *rig) serve(path string, b []byte) {
	g.serveBy(path, func(w http.ResponseWriter, r *http.Request) { whole(w, r, b) })
}

func (g *rig) serveBy(path string, h http.HandlerFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.has[path] = h
}

func whole(w http.ResponseWriter, r *http.Request, b []byte) {
	w.Header().Set("ETag", `"`+sum(b)[:8]+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// add writes a record; the URL of a path is the server's.
func (g *rig) add(name string, spec workflow.ImageSpec) {
	g.t.Helper()
	if strings.HasPrefix(spec.URL, "/") {
		spec.URL = g.srv.URL + spec.URL
	}
	if strings.HasPrefix(spec.Checksum, "/") {
		spec.Checksum = g.srv.URL + spec.Checksum
	}
	i := &workflow.Image{Meta: hardware.Meta{Name: name}, Spec: spec}
	g.must(g.m.Write(g.t.Context(), name, spec.Blob, func(ctx context.Context) error {
		err := g.db.CreateImage(ctx, i)
		if errors.Is(err, workflow.ErrExists) {
			err = g.db.UpdateImage(ctx, i)
		}
		return err
	}))
}

// ended waits for the next event that says that the image is ready or failed.
func (g *rig) ended(name string) *workflow.Image {
	g.t.Helper()
	for ev, err := range g.db.WatchEvents(g.t.Context(), g.cursor) {
		g.must(err)
		g.cursor = ev.Cursor
		if (ev.Reason == hardware.ReasonImageReady || ev.Reason == hardware.ReasonImageFailed) && strings.HasPrefix(ev.Detail, "image "+name+": ") {
			return g.image(name)
		}
	}
	g.t.Fatalf("nothing more happens to %s", name)
	return nil
}

func (g *rig) image(name string) *workflow.Image {
	g.t.Helper()
	i, err := g.db.ImageByName(g.t.Context(), name)
	g.must(err)
	return i
}

// ready waits and compares the disk that a worker would unpack.
func (g *rig) ready(name string, disk []byte) *workflow.Image {
	g.t.Helper()
	i := g.ended(name)
	if i.Status.State != workflow.ImageReady {
		g.t.Fatalf("%s is %s: %s", name, i.Status.State, i.Status.Message)
	}
	src, err := i.Source()
	g.must(err)
	f, err := g.files.Open(g.t.Context(), strings.TrimPrefix(src.URL, "/images/"))
	g.must(err)
	sum, err := codec.ParseChecksum(src.Checksum)
	g.must(err)
	r, err := codec.NewReader(f, codec.Options{Format: codec.Format(src.Format), Checksum: sum})
	g.must(err)
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, disk) {
		g.t.Fatalf("%s: unpacked %d bytes, want %d, %v", name, len(got), len(disk), err)
	}
	if i.Status.DiskBytes != int64(len(disk)) {
		g.t.Errorf("%s: said to be of %d bytes", name, i.Status.DiskBytes)
	}
	return i
}

// failed waits and compares the message.
func (g *rig) failed(name, want string) *workflow.Image {
	g.t.Helper()
	i := g.ended(name)
	if i.Status.State != workflow.ImageFailed || !strings.Contains(i.Status.Message, want) {
		g.t.Fatalf("%s is %s: %q, want %q", name, i.Status.State, i.Status.Message, want)
	}
	return i
}

// kept compares what is on the disk with the files that are wanted there, after the
// manager has stopped.
func (g *rig) kept(want ...string) {
	g.t.Helper()
	g.stop()
	entries, err := os.ReadDir(filepath.Join(g.dir, "images"))
	g.must(err)
	names := map[string]bool{}
	var total int64
	for _, e := range entries {
		names[e.Name()] = true
		st, err := e.Info()
		g.must(err)
		total += st.Size()
	}
	for _, digest := range want {
		if !names[digest] {
			g.t.Errorf("%s is gone", digest)
		}
		delete(names, digest)
	}
	if len(names) > 0 {
		g.t.Errorf("left over: %v", names)
	}
	if g.files.Used() != total {
		g.t.Errorf("%d bytes are counted, %d are there", g.files.Used(), total)
	}
}

func sum(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }

// makeDisk is a whole disk of n bytes: a boot sector, text, noise, and zeros.
func makeDisk(seed uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range min(n/8, 100_000) {
		b[1024+i] = byte(rng.Uint32())
	}
	for i := n / 2; i < n/2+n/8; i += 16 {
		copy(b[i:], fmt.Sprintf("line %10d\n", i))
	}
	copy(b[n-100:], "the end")
	b[510], b[511] = 0x55, 0xaa
	return b
}

// tool runs a program of the distribution on b.
func tool(t testing.TB, b []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("RACKSTRAP_TEST_NOSKIP") != "1" {
		t.Skipf("%s is not installed", name)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// qcow2 is b as qemu-img packs it.
func qcow2(t testing.TB, b []byte, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, b, 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, nil, "qemu-img", append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, args...), in, out)...)
	packed, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}
