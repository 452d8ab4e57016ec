package action

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rackstrap/rackstrap/workflow"
)

// impatient is for tests of what goes wrong.
var impatient = patience{tries: 3, first: time.Millisecond, longest: time.Millisecond, stall: 10 * time.Second, restarts: 10}

// testImage is a disk image with data, holes and a partition signature; its
// size is no multiple of the block size.
func testImage(size int) []byte {
	b := make([]byte, size)
	fill := rand.NewChaCha8([32]byte{1})
	for _, part := range [][2]int{{0, size / 8}, {size / 2, size/2 + size/8}, {size - 100, size}} {
		_, _ = fill.Read(b[part[0]:part[1]])
	}
	copy(b, "boot code")
	copy(b[510:], "\x55\xaa")
	return b
}

// partitioned is a disk image with one partition, from 1 MiB to end.
func partitioned(b []byte, end int) []byte {
	clear(b[446:510])
	b[446+4] = 0x83
	binary.LittleEndian.PutUint32(b[446+8:], mib/512)
	binary.LittleEndian.PutUint32(b[446+12:], uint32(end-mib)/512)
	return b
}

func compress(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

func weak(b []byte) string {
	s := md5.Sum(b)
	return "md5:" + hex.EncodeToString(s[:])
}

// faults is an HTTP server for one file that misbehaves as told.
type faults struct {
	body    []byte
	etag    string
	ranges  bool
	cut     int // the first answer breaks off here
	stall   bool
	answers []int // status codes before the first real answer
	change  bool  // another ETag each time
	chunked bool  // no Content-Length
	seen    atomic.Int64
	ranged  atomic.Int64
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(f.seen.Add(1))
	if n <= len(f.answers) {
		w.WriteHeader(f.answers[n-1])
		return
	}
	n -= len(f.answers)
	if tag := f.etag; tag != "" {
		if f.change {
			tag = fmt.Sprintf(`"%d"`, n)
		}
		w.Header().Set("ETag", tag)
	}
	if r.Header.Get("Range") != "" {
		f.ranged.Add(1)
	}
	if n > 1 || f.cut == 0 {
		switch {
		case f.ranges:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
		case f.chunked:
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(f.body)
		default:
			w.Header().Set("Content-Length", fmt.Sprint(len(f.body)))
			_, _ = w.Write(f.body)
		}
		return
	}
	if !f.chunked {
		w.Header().Set("Content-Length", fmt.Sprint(len(f.body)))
	}
	_, _ = w.Write(f.body[:f.cut])
	_ = http.NewResponseController(w).Flush()
	if f.stall {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

func TestImageWrite(t *testing.T) {
	t.Parallel()
	const diskSize = 24 * mib
	image := partitioned(testImage(17*mib+12345), 17*mib)
	packed := compress(t, image)
	cut := partitioned(testImage(9*mib), 12*mib)
	flipped := bytes.Clone(packed)
	flipped[len(flipped)/2] ^= 0x10
	for _, tt := range []struct {
		name   string
		server *faults
		o      workflow.ImageWrite
		wrong  string // empty: a success
		clean  bool   // the disk was not touched
		again  bool   // not permanent
	}{
		{name: "zstd", server: &faults{body: packed}, o: workflow.ImageWrite{Checksum: sum(packed)}},
		{name: "raw", server: &faults{body: image}},
		{name: "zstd by md5", server: &faults{body: packed}, o: workflow.ImageWrite{Checksum: weak(packed)}},
		{name: "another one by md5", server: &faults{body: packed}, o: workflow.ImageWrite{Checksum: weak(image)}, wrong: "checksum mismatch", again: true},
		{name: "raw without length", server: &faults{body: image, chunked: true}, o: workflow.ImageWrite{Checksum: sum(image)}},
		{name: "no length", server: &faults{body: packed, chunked: true}},
		{name: "resumed", server: &faults{body: packed, etag: `"a"`, ranges: true, cut: len(packed) / 2}},
		{name: "resumed without ranges", server: &faults{body: packed, etag: `"a"`, cut: len(packed) / 2}},
		{name: "resumed by checksum only", server: &faults{body: packed, ranges: true, cut: len(packed) / 2}, o: workflow.ImageWrite{Checksum: sum(packed)}},
		{name: "resumed without length", server: &faults{body: packed, etag: `"a"`, ranges: true, chunked: true, cut: len(packed) / 2}},
		{name: "stalled", server: &faults{body: packed, etag: `"a"`, ranges: true, cut: len(packed) / 2, stall: true}},
		{name: "busy server", server: &faults{body: packed, answers: []int{503, 429}}},

		{name: "changed in between", server: &faults{body: packed, etag: `"a"`, change: true, ranges: true, cut: len(packed) / 2}, wrong: "changed during the download", again: true},
		{name: "nothing to resume by", server: &faults{body: packed, ranges: true, cut: len(packed) / 2}, wrong: "set checksum:", again: true},
		{name: "altered", server: &faults{body: flipped}, wrong: "corrupt", again: true},
		{name: "altered, by checksum", server: &faults{body: append(bytes.Clone(image[:10*mib]), make([]byte, mib)...)}, o: workflow.ImageWrite{Checksum: sum(image)}, wrong: "checksum mismatch", again: true},
		{name: "truncated file", server: &faults{body: packed[:len(packed)-1000]}, wrong: "truncated", again: true},
		{name: "cut short before it was served", server: &faults{body: cut}, wrong: fmt.Sprintf("image ends at byte %d, its partition 1 at %d: it was cut short", 9*mib, 12*mib), again: true},
		{name: "cut short, partition larger than the disk", server: &faults{body: partitioned(testImage(9*mib), 2*diskSize)}, wrong: "cut short", again: true},
		{name: "cut short before it was compressed", server: &faults{body: compress(t, cut)}, wrong: "cut short", again: true},
		{name: "raw without length or checksum", server: &faults{body: image, chunked: true}, wrong: "set checksum:", clean: true},
		{name: "trailing bytes", server: &faults{body: append(bytes.Clone(packed), "more"...)}, wrong: "followed by something else"},
		{name: "not found", server: &faults{answers: []int{404}}, wrong: "404", clean: true},
		{name: "server is broken", server: &faults{answers: []int{500, 500, 500}}, wrong: "500", clean: true, again: true},
		{name: "web page", server: &faults{body: []byte("<html>login</html>")}, wrong: "HTML", clean: true},
		{name: "qcow2", server: &faults{body: append([]byte("QFI\xfb"), make([]byte, 1000)...)}, wrong: "qemu-img", clean: true},
		{name: "empty", server: &faults{}, wrong: "empty", clean: true},
		{name: "raw image larger than the disk", server: &faults{body: testImage(diskSize + mib)}, wrong: fmt.Sprint(diskSize + mib), clean: true},
		{name: "zstd that says it is larger", server: &faults{body: compress(t, testImage(diskSize+mib))}, wrong: "larger than the disk", clean: true},
		{name: "larger, found while writing", server: &faults{body: testImage(diskSize + mib), chunked: true}, o: workflow.ImageWrite{Checksum: sum(testImage(diskSize + mib))}, wrong: "larger than the disk"},
		{name: "wrong checksum text", server: &faults{body: image}, o: workflow.ImageWrite{Checksum: "sha256:12"}, wrong: "hexadecimal digits", clean: true},
		{name: "wrong format", server: &faults{body: image}, o: workflow.ImageWrite{Format: "xz"}, wrong: "not compressed", clean: true},
		{name: "https without a CA", server: &faults{}, o: workflow.ImageWrite{Image: "https://x/y"}, wrong: "set ca:", clean: true},
		{name: "no such disk", server: &faults{body: image}, o: workflow.ImageWrite{Disk: "serial=X"}, wrong: "found", clean: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.server)
			defer server.Close()
			env := fakeMachine(t, fakeDisk{name: "sda", size: diskSize})
			env.HTTPBase = server.URL
			if tt.o.Image == "" {
				tt.o.Image = "/images/x"
			}
			p := impatient
			if tt.server.stall {
				p.stall = 300 * time.Millisecond
			}
			var last Progress
			env.Progress = func(p Progress) { last = p }
			r, err := writeImage(t.Context(), env, tt.o, p)
			got, readErr := os.ReadFile(filepath.Join(env.Sys.Dev, "sda"))
			if readErr != nil {
				t.Fatal(readErr)
			}
			if tt.wrong == "" {
				if err != nil {
					t.Fatal(err)
				}
				checkWritten(t, got, image)
				verified, compared := tt.o.Checksum, ""
				if workflow.WeakChecksum(verified) {
					verified, compared = sum(tt.server.body), verified
				}
				if r.SourceBytes != int64(len(tt.server.body)) || r.WrittenBytes != int64(len(image)) || r.Checksum != verified || r.Compared != compared {
					t.Errorf("%+v", r)
				}
				if last.Done != r.SourceBytes || last.Written != r.WrittenBytes {
					t.Errorf("last progress %+v", last)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Fatalf("got %v, want %q", err, tt.wrong)
			}
			if IsPermanent(err) == tt.again {
				t.Errorf("permanent is %t: %v", !tt.again, err)
			}
			if Untouched(err) != tt.clean {
				t.Errorf("it says that the disk is untouched: %t: %v", !tt.clean, err)
			}
			checkNotBootable(t, got, tt.clean)
		})
	}
}

func checkWritten(t *testing.T, got, image []byte) {
	t.Helper()
	if !bytes.Equal(got[:len(image)], image) {
		t.Error("the disk differs from the image")
	}
	if end := len(got) - mib; firstNonZero(got[end:]) >= 0 {
		t.Error("the last MiB still has what was there, such as an old GPT")
	}
}

// checkNotBootable: either nothing was touched, or both ends are zero.
func checkNotBootable(t *testing.T, got []byte, clean bool) {
	t.Helper()
	if clean {
		if bytes.Count(got, []byte{0xff}) != len(got) {
			t.Error("the disk was touched")
		}
		return
	}
	if firstNonZero(got[:mib]) >= 0 || firstNonZero(got[len(got)-mib:]) >= 0 {
		t.Error("a failed write left something that may boot")
	}
}

// Whatever the moment of the cancellation, what is left cannot boot.
func TestImageWriteCancelled(t *testing.T) {
	t.Parallel()
	image := testImage(14 * mib)
	for _, after := range []int64{1, 4 * mib, 12 * mib, 14 * mib} {
		server := httptest.NewServer(&faults{body: image})
		env := fakeMachine(t, fakeDisk{name: "sda", size: 16 * mib})
		env.HTTPBase = server.URL
		ctx, cancel := context.WithCancel(t.Context())
		w := &cancelAt{at: after, cancel: cancel}
		env.Progress = w.progress
		_, err := writeImage(ctx, env, workflow.ImageWrite{Image: "/x"}, impatient)
		got, readErr := os.ReadFile(filepath.Join(env.Sys.Dev, "sda"))
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil {
			checkNotBootable(t, got, false)
		} else {
			checkWritten(t, got, image)
		}
		cancel()
		server.Close()
	}
}

type cancelAt struct {
	at     int64
	cancel func()
}

func (c *cancelAt) progress(p Progress) {
	if p.Written >= c.at {
		c.cancel()
	}
}

// TestAnInstallLeavesOtherDisks: what the install templates do to a disk, they do to that
// one. A machine that is kept with its disks counts on it.
func TestAnInstallLeavesOtherDisks(t *testing.T) {
	t.Parallel()
	image := testImage(9 * mib)
	server := httptest.NewServer(&faults{body: image})
	defer server.Close()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 32 * mib}, fakeDisk{name: "sdb", size: 16 * mib}, fakeDisk{"sdc", 24 * mib, map[string]string{"device/serial": "C"}})
	env.HTTPBase = server.URL
	data := testImage(16 * mib)
	if err := os.WriteFile(filepath.Join(env.Sys.Dev, "sdb"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(env.Sys.Dev, "sdc"))
	if err != nil {
		t.Fatal(err)
	}
	mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.DiskLargest})
	mustAct(t, env, workflow.KindImageWrite, &workflow.ImageWrite{Disk: workflow.DiskLargest, Image: "/images/x"})
	for name, want := range map[string][]byte{"sdb": data, "sdc": before} {
		if got, err := os.ReadFile(filepath.Join(env.Sys.Dev, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as it was: %v", name, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(env.Sys.Dev, "sda")); err != nil || !bytes.HasPrefix(got, image) {
		t.Errorf("the image is not on sda: %v", err)
	}
}

func TestImageWriteHTTPS(t *testing.T) {
	t.Parallel()
	image := testImage(5 * mib)
	server := httptest.NewTLSServer(&faults{body: image})
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, tt := range []struct {
		name  string
		o     workflow.ImageWrite
		wrong string
	}{
		{"with its CA", workflow.ImageWrite{CA: ca}, ""},
		{"insecure with checksum", workflow.ImageWrite{Insecure: true, Checksum: sum(image)}, ""},
		{"insecure with md5", workflow.ImageWrite{Insecure: true, Checksum: weak(image)}, "needs a checksum"},
		{"insecure without", workflow.ImageWrite{Insecure: true}, "needs a checksum"},
		{"bad PEM", workflow.ImageWrite{CA: "x"}, "no PEM certificate"},
	} {
		env := fakeMachine(t, fakeDisk{name: "sda", size: 8 * mib})
		tt.o.Image = server.URL + "/i"
		_, err := writeImage(t.Context(), env, tt.o, impatient)
		if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.wrong)
		}
	}
}

func TestImageRedirects(t *testing.T) {
	t.Parallel()
	image := testImage(5 * mib)
	mux := http.NewServeMux()
	mux.Handle("/image", &faults{body: image})
	mux.Handle("/once", http.RedirectHandler("/image", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 8 * mib})
	env.HTTPBase = server.URL
	if _, err := writeImage(t.Context(), env, workflow.ImageWrite{Image: "/once"}, impatient); err != nil {
		t.Error(err)
	}
	_, err := writeImage(t.Context(), env, workflow.ImageWrite{Image: "/loop"}, impatient)
	if err == nil || !strings.Contains(err.Error(), "redirects") || !IsPermanent(err) {
		t.Errorf("loop: %v", err)
	}
}

// Passwords and signatures in URLs stay out of errors and logs.
func TestURLSecrets(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	env := fakeMachine(t, fakeDisk{name: "sda", size: 8 * mib})
	server := httptest.NewServer(&faults{answers: []int{500, 404}})
	url := strings.Replace(server.URL, "http://", "http://user:hunter2@", 1) + "/i?sig=hunter2"
	env.Log = newTestLogger(&log)
	_, err := writeImage(t.Context(), env, workflow.ImageWrite{Image: url}, impatient)
	server.Close()
	_, err2 := writeImage(t.Context(), env, workflow.ImageWrite{Image: url}, impatient)
	if err == nil || err2 == nil {
		t.Fatal("success")
	}
	if all := log.String() + err.Error() + err2.Error(); strings.Contains(all, "hunter2") || strings.Contains(all, "user") {
		t.Errorf("secret in %s", all)
	}
}

func BenchmarkImageWrite(b *testing.B) {
	image := testImage(512 * mib)
	packed := compress(b, image)
	server := httptest.NewServer(&faults{body: packed})
	defer server.Close()
	path, env := loopDisk(b, 600*mib)
	env.HTTPBase = server.URL
	b.SetBytes(int64(len(image)))
	for b.Loop() {
		if _, err := writeImage(b.Context(), env, workflow.ImageWrite{Image: "/i", Disk: workflow.Disk(path), Checksum: sum(packed)}, impatient); err != nil {
			b.Fatal(err)
		}
	}
}
