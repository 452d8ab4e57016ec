package catalogue_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestFormats: every format that is read, as the real tools write it, becomes what
// workers unpack fast.
func TestFormats(t *testing.T) {
	t.Parallel()
	disk := makeDisk(1, 6<<20)
	for name, tc := range map[string]struct {
		file   []byte
		format string
		served string // "": the source itself
	}{
		"zst":         {tool(t, disk, "zstd", "-q", "-c"), "zst", ""},
		"gz":          {tool(t, disk, "gzip", "-c", "-1"), "gz", ""},
		"xz":          {tool(t, disk, "xz", "-c", "-1"), "xz", "zst"},
		"bz2":         {tool(t, disk, "bzip2", "-c", "-1"), "bz2", "zst"},
		"raw":         {disk, "raw", "zst"},
		"qcow2":       {qcow2(t, disk), "qcow2", "zst"},
		"qcow2-c":     {qcow2(t, disk, "-c"), "qcow2", "zst"},
		"qcow2-zstd":  {qcow2(t, disk, "-c", "-o", "compression_type=zstd"), "qcow2", "zst"},
		"qcow2-in-xz": {tool(t, qcow2(t, disk), "xz", "-c", "-1"), "xz", "zst"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.serve("/x", tc.file)
			g.add("x", workflow.ImageSpec{URL: "/x", Checksum: "sha256:" + sum(tc.file)})
			i := g.ready("x", disk)
			st := i.Status
			if st.Source != (workflow.ImageFile{Format: tc.format, Digest: sum(tc.file), Bytes: int64(len(tc.file))}) || st.Fetched.IsZero() || st.Checksum != i.Spec.Checksum {
				t.Errorf("source %+v", st)
			}
			r := st.Renditions[0]
			if tc.served == "" && r.ImageFile != st.Source || tc.served != "" && r.Format != tc.served {
				t.Errorf("served is %+v", r)
			}
			if r.Source != st.Source || r.Checksum != st.Checksum {
				t.Errorf("made of %+v", r)
			}
			if tc.served != "" && r.Bytes > int64(len(disk))/4 {
				t.Errorf("%d bytes are served of a disk of %d", r.Bytes, len(disk))
			}
			g.kept(r.Digest)
		})
	}
}

// TestRefused: what cannot become an image says why, and leaves nothing behind.
func TestRefused(t *testing.T) {
	t.Parallel()
	disk := makeDisk(2, 4<<20)
	gz := tool(t, disk, "gzip", "-c", "-1")
	zst := tool(t, disk, "zstd", "-q", "-c")
	broken := bytes.Clone(zst)
	broken[len(broken)/2] ^= 0xff
	page := []byte("<!DOCTYPE html><html><body>Please log in</body></html>" + strings.Repeat(" ", 1000))
	other := "sha256:" + sum([]byte("other"))
	for name, tc := range map[string]struct {
		file []byte
		spec workflow.ImageSpec
		want string
	}{
		"checksum":     {gz, workflow.ImageSpec{Checksum: other}, "checksum differs: wanted " + other + ", got sha256:" + sum(gz)},
		"page":         {page, workflow.ImageSpec{}, "an HTML page (check the URL"},
		"page as zst":  {page, workflow.ImageSpec{Format: "zst"}, "an HTML page"},
		"page, qcow2":  {page, workflow.ImageSpec{Format: "qcow2"}, "qcow2 was asked for"},
		"gz is no zst": {gz, workflow.ImageSpec{Format: "zst"}, "format: zst was asked for, it is gz"},
		"cut gz":       {cut(gz), workflow.ImageSpec{}, "truncated"},
		"broken zst":   {broken, workflow.ImageSpec{}, "corrupt"},
		"twice":        {tool(t, gz, "xz", "-c"), workflow.ImageSpec{}, "inside xz: it is gz again"},
		"page in gz":   {tool(t, page, "gzip", "-c"), workflow.ImageSpec{}, "inside gz: not a usable disk image: it is an HTML page"},
		"cut qcow2":    {cut(qcow2(t, disk)), workflow.ImageSpec{}, "truncated"},
		"qcow2 page":   {qcow2(t, append(page, make([]byte, 4096-len(page)%512)...)), workflow.ImageSpec{}, "inside qcow2: not a usable disk image"},
		"not there":    {nil, workflow.ImageSpec{}, "404 Not Found (check the URL)"},
		"sums":         {gz, workflow.ImageSpec{Checksum: "/none"}, "/none: the server says 404"},
		"sums without": {gz, workflow.ImageSpec{Checksum: "/sums"}, `no sha256, sha512 or md5 of "x"`},
		"too large":    {make([]byte, 6<<20), workflow.ImageSpec{}, "image quota is used up: it needs 6 MiB, and 0 MiB of 5 MiB are taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.stop()
			g.quota = 5 << 20
			g.start()
			if tc.file != nil {
				g.serve("/x", tc.file)
			}
			g.serve("/sums", []byte(sum(gz)+"  y\n"))
			tc.spec.URL = "/x"
			g.add("x", tc.spec)
			i := g.failed("x", tc.want)
			if _, err := i.Source(); err == nil || !strings.Contains(err.Error(), "rackstrap image fetch x") {
				t.Errorf("it can be installed: %v", err)
			}
			g.kept()
		})
	}
}

func TestChecksumList(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	disk := makeDisk(3, 4<<20)
	gz := tool(t, disk, "gzip", "-c")
	g.serve("/x.gz", gz)
	g.serve("/SHA256SUMS", []byte(sum(gz)+" *x.gz\n"+sum(disk)+" *x\n"))
	g.add("x", workflow.ImageSpec{URL: "/x.gz", Checksum: "/SHA256SUMS"})
	if i := g.ready("x", disk); i.Status.Checksum != "sha256:"+sum(gz) {
		t.Errorf("checked against %s", i.Status.Checksum)
	}
}

// An image of which only the MD5 is published is taken, and the timeline says by what
// it is known from now on.
func TestWeakChecksum(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	disk := makeDisk(3, 4<<20)
	gz := tool(t, disk, "gzip", "-c")
	digest := md5.Sum(gz)
	weak := "md5:" + hex.EncodeToString(digest[:])
	g.serve("/x.gz", gz)
	g.add("x", workflow.ImageSpec{URL: "/x.gz", Checksum: weak})
	if i := g.ready("x", disk); i.Status.Checksum != weak || i.Status.Source.Digest != sum(gz) {
		t.Errorf("%+v", i.Status)
	}
	list, err := g.db.Events(t.Context(), workflow.EventQuery{Reason: hardware.ReasonWeakChecksum})
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Detail, weak) || !strings.Contains(list[0].Detail, "sha256:"+sum(gz)) {
		t.Errorf("%v, %+v", err, list)
	}
}

// TestCut: a server that breaks off again and again is asked for the rest.
func TestCut(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	disk := makeDisk(4, 8<<20)
	g.serveBy("/x", func(w http.ResponseWriter, r *http.Request) {
		cut := &cutter{ResponseWriter: w, left: 3 << 20}
		whole(cut, r, disk)
	})
	g.add("x", workflow.ImageSpec{URL: "/x"})
	g.ready("x", disk)
	want := []string{"/x", "/x bytes=", "/x bytes="}
	for i, a := range g.asked {
		if i >= len(want) || !strings.HasPrefix(a, want[i]) {
			t.Errorf("asked for %v", g.asked)
			break
		}
	}
	if !slices.Equal(g.waits, []time.Duration{time.Second, time.Second}) {
		t.Errorf("waited %v", g.waits)
	}
}

// cutter breaks the connection off after some bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(b)
}

// TestParts: parts that are of different files, which no header says, are noticed by
// the checksum, and the whole is fetched once more.
func TestParts(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	old, disk := makeDisk(5, 4<<20), makeDisk(6, 4<<20)
	n := 0
	g.serveBy("/x", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"always-the-same"`)
		b := disk
		if n++; n == 1 {
			b, w = old, &cutter{w, 1 << 20}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	})
	g.add("x", workflow.ImageSpec{URL: "/x", Checksum: "sha256:" + sum(disk)})
	i := g.ready("x", disk)
	if n != 3 {
		t.Errorf("asked %d times: %v", n, g.asked)
	}
	g.kept(i.Status.Renditions[0].Digest)
}

// TestGivenUp: a server that is down is not asked for ever.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.serveBy("/x", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	g.add("x", workflow.ImageSpec{URL: "/x"})
	g.failed("x", "given up after 20 tries: the server says 503")
	var total time.Duration
	for _, d := range g.waits {
		total += d
	}
	if total < 10*time.Minute || total > time.Hour {
		t.Errorf("after %s", total)
	}
	g.serve("/x", makeDisk(7, 1<<20))
	g.must(g.m.Fetch(t.Context(), "x"))
	g.ready("x", makeDisk(7, 1<<20))
}

// TestDrip: a server that breaks off after a few bytes, each time, is not asked for
// ever, and one that brings a megabyte now and then is.
func TestDrip(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		each int
		want string
	}{
		"a little": {40 << 10, "given up after 20 tries"},
		"enough":   {100 << 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			disk := makeDisk(23, 4<<20)
			g.serveBy("/x", func(w http.ResponseWriter, r *http.Request) {
				whole(&cutter{ResponseWriter: w, left: tc.each}, r, disk)
			})
			g.add("x", workflow.ImageSpec{URL: "/x"})
			if tc.want != "" {
				g.failed("x", tc.want)
				return
			}
			g.ready("x", disk)
		})
	}
}

// TestDeadServers: those that wait for a server that is down keep nobody from
// fetching.
func TestDeadServers(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.stop()
	g.start(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	g.serveBy("/down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for _, name := range []string{"a", "b", "c", "d"} {
		g.add(name, workflow.ImageSpec{URL: "/down"})
	}
	disk := makeDisk(24, 1<<20)
	g.serve("/x", disk)
	g.add("x", workflow.ImageSpec{URL: "/x"})
	g.ready("x", disk)
}

// TestRestart: a stop in the middle of a transfer costs no bytes that were fetched.
func TestRestart(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	disk := makeDisk(8, 8<<20)
	came := make(chan struct{})
	g.serveBy("/x", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			whole(w, r, disk)
			return
		}
		w.Header().Set("ETag", `"`+sum(disk)[:8]+`"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(disk)))
		_, _ = w.Write(disk[:4<<20])
		w.(http.Flusher).Flush()
		close(came)
		<-r.Context().Done()
	})
	g.add("x", workflow.ImageSpec{URL: "/x"})
	<-came
	for p, ok := g.m.Progress(g.image("x").Meta.UID); !ok || p.Done < 4<<20; p, ok = g.m.Progress(g.image("x").Meta.UID) {
		if p.State == workflow.ImageFetching && p.Total != 0 && p.Total != int64(len(disk)) {
			t.Fatalf("progress %+v", p)
		}
	}
	g.stop()
	if st := g.image("x").Current(); st.State != workflow.ImageFetching {
		t.Errorf("stopped as %+v", st)
	}
	g.start()
	g.ready("x", disk)
	if got := g.asked[len(g.asked)-1]; got != "/x bytes=4194304-" {
		t.Errorf("asked for %s", got)
	}
}

// TestRestartConverting: what is fetched is not fetched again.
func TestRestartConverting(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.stop()
	disk := makeDisk(9, 2<<20)
	b, err := g.files.Put(t.Context(), bytes.NewReader(disk), "")
	g.must(err)
	i := &workflow.Image{Meta: hardware.Meta{Name: "x"}, Spec: workflow.ImageSpec{URL: g.srv.URL + "/x"}}
	g.must(g.db.CreateImage(t.Context(), i))
	g.must(g.db.SetImageStatus(t.Context(), i, workflow.ImageStatus{
		State: workflow.ImageConverting, For: i.Spec.Key(), Source: workflow.ImageFile{Digest: b.Digest, Bytes: b.Bytes},
	}, nil))
	g.start()
	g.ready("x", disk)
	if len(g.asked) != 0 {
		t.Errorf("asked for %v", g.asked)
	}
}

// TestOldRecords: images that were uploaded before images had a status.
func TestOldRecords(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.stop()
	disk := makeDisk(10, 2<<20)
	zst := tool(t, disk, "zstd", "-q", "-c")
	b, err := g.files.Put(t.Context(), bytes.NewReader(zst), "")
	g.must(err)
	g.must(g.db.CreateImage(t.Context(), &workflow.Image{Meta: hardware.Meta{Name: "x"}, Spec: workflow.ImageSpec{Blob: strings.ToUpper(b.Digest), Bytes: b.Bytes}}))
	g.must(g.db.CreateImage(t.Context(), &workflow.Image{Meta: hardware.Meta{Name: "y"}, Spec: workflow.ImageSpec{Blob: sum([]byte("gone")), Bytes: 4}}))
	g.start()
	g.ready("x", disk)
	g.cursor = 0
	g.failed("y", "upload it again")
	g.kept(b.Digest)
}

// TestFetchAgain: until the new file is there, the old one is installed.
func TestFetchAgain(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	one, two := makeDisk(11, 2<<20), makeDisk(12, 2<<20)
	g.serve("/x", one)
	g.add("x", workflow.ImageSpec{URL: "/x"})
	first := g.ready("x", one).Status
	g.must(g.m.Fetch(t.Context(), "x"))
	if again := g.ready("x", one).Status; again.Renditions[0] != first.Renditions[0] || !again.Fetched.After(first.Fetched) {
		t.Errorf("the same file is %+v", again)
	}
	g.serve("/x", []byte("<html>down for maintenance"))
	g.must(g.m.Fetch(t.Context(), "x"))
	broken := g.failed("x", "HTML")
	if src, err := broken.Source(); err != nil || src.URL != "/images/"+first.Renditions[0].Digest {
		t.Errorf("the old one is %+v, %v", src, err)
	}
	if r := broken.Current().Renditions[0]; r.Source != first.Source || broken.Status.Checksum != "" {
		t.Errorf("the old one is said to be of %+v", r.Source)
	}
	g.serve("/x", one)
	g.must(g.m.Fetch(t.Context(), "x"))
	if back := g.ready("x", one).Status; back.Source != first.Source || back.Renditions[0] != first.Renditions[0] {
		t.Errorf("the first file again is %+v", back)
	}
	g.serve("/x", two)
	g.must(g.m.Fetch(t.Context(), "x"))
	second := g.ready("x", two).Status
	g.kept(second.Renditions[0].Digest)
	if err := g.m.Fetch(t.Context(), "nobody"); !errors.Is(err, workflow.ErrNotFound) {
		t.Error(err)
	}
}

// TestReplaced: until the new one is ready the one before is served; it goes when
// nobody needs it, also where the new one is one that the machines fetch.
func TestReplaced(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	one, two := makeDisk(21, 2<<20), makeDisk(22, 2<<20)
	g.serve("/1", one)
	g.add("x", workflow.ImageSpec{URL: "/1"})
	first := g.ready("x", one).Status
	served := func(what string) {
		t.Helper()
		i := g.image("x")
		src, err := i.Source()
		if err != nil || src.Checksum != "sha256:"+first.Renditions[0].Digest || !g.files.Has(first.Renditions[0].Digest) {
			t.Fatalf("%s: %+v, %v", what, src, err)
		}
		if st := i.Current(); st.Renditions[0].Source != first.Source || st.DiskBytes != first.DiskBytes {
			t.Errorf("%s: it is of %+v", what, st.Renditions[0])
		}
	}
	came, release := make(chan struct{}), make(chan struct{})
	g.serveBy("/2", func(w http.ResponseWriter, r *http.Request) {
		close(came)
		<-release
		whole(w, r, []byte("<html>down for maintenance"))
	})
	g.add("x", workflow.ImageSpec{URL: "/2"})
	served("replaced")
	<-came
	served("while it is fetched")
	close(release)
	g.failed("x", "HTML")
	served("the new one is broken")
	g.stop()
	g.start()
	served("after a restart")
	g.serve("/2", two)
	g.must(g.m.Fetch(t.Context(), "x"))
	second := g.ready("x", two).Status
	g.add("y", workflow.ImageSpec{URL: "/1"})
	y := g.ready("y", one).Status
	g.add("x", workflow.ImageSpec{URL: "/2", Format: "raw"}) // the same bytes, to be read another way
	if raw := g.ready("x", two).Status; raw.Renditions[0].For == second.Renditions[0].For {
		t.Errorf("not made again: %+v", raw)
	}
	g.add("x", workflow.ImageSpec{URL: "/2", Direct: true})
	g.add("z", workflow.ImageSpec{URL: "/1"})
	g.cursor = 0
	g.ended("z")
	for len(g.image("x").Status.Renditions) > 0 {
		runtime.Gosched()
	}
	g.kept(y.Renditions[0].Digest)
}

// TestStopped: a record that goes, or names another URL, ends the transfer.
func TestStopped(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	disk := makeDisk(13, 2<<20)
	came, gone := make(chan struct{}, 2), make(chan struct{}, 2)
	g.serveBy("/hangs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		came <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	g.serve("/x", disk)
	g.add("x", workflow.ImageSpec{URL: "/hangs"})
	g.add("y", workflow.ImageSpec{URL: "/hangs"})
	<-came
	<-came
	g.add("x", workflow.ImageSpec{URL: "/x"})
	i := g.ready("x", disk)
	<-gone
	g.must(g.m.Write(t.Context(), "y", "", func(ctx context.Context) error { return g.db.DeleteImage(ctx, "y", 0) }))
	<-gone
	// what the next look does, a start does too
	g.stop()
	g.start()
	g.add("z", workflow.ImageSpec{URL: "/x"})
	g.ready("z", disk)
	g.kept(i.Status.Renditions[0].Digest)
}

func TestUpload(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ctx := t.Context()
	disk := makeDisk(14, 2<<20)
	q := qcow2(t, disk)
	upload := func(b []byte, spec workflow.ImageSpec) error {
		i := &workflow.Image{Meta: hardware.Meta{Name: "x"}, Spec: spec}
		return g.m.Upload(ctx, i, bytes.NewReader(b), spec.Checksum, func(ctx context.Context) error {
			err := g.db.CreateImage(ctx, i)
			if errors.Is(err, workflow.ErrExists) {
				err = g.db.UpdateImage(ctx, i)
			}
			return err
		})
	}
	var invalid *hardware.Invalid
	if err := upload([]byte("<html>"), workflow.ImageSpec{}); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "HTML") {
		t.Errorf("a page: %v", err)
	}
	if err := upload(q, workflow.ImageSpec{Checksum: "sha256:" + sum(disk)}); !errors.Is(err, image.ErrChecksum) {
		t.Errorf("other bytes: %v", err)
	}
	if err := upload(nil, workflow.ImageSpec{}); err == nil {
		t.Error("an empty file is an image")
	}
	g.must(upload(q, workflow.ImageSpec{Checksum: "sha256:" + sum(q)}))
	i := g.ready("x", disk)
	g.must(g.m.Write(ctx, "x", i.Spec.Blob, func(ctx context.Context) error { // a label: its source is gone, its disk is not
		c := *i
		c.Meta.Labels = map[string]string{"a": "b"}
		return g.db.UpdateImage(ctx, &c)
	}))
	if err := g.m.Write(ctx, "y", i.Spec.Blob, func(context.Context) error { return nil }); !errors.As(err, &invalid) {
		t.Errorf("a record names a file that is gone: %v", err)
	}
	g.must(g.files.Delete(ctx, i.Status.Renditions[0].Digest))
	g.stop()
	g.start()
	g.failed("x", "upload it again")
	g.must(upload(q, workflow.ImageSpec{Checksum: "sha256:" + sum(q)}))
	i = g.ready("x", disk)
	g.kept(i.Status.Renditions[0].Digest)
}

// TestRawAsItIs: the operator's word for it.
func TestRawAsItIs(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.serve("/x", []byte("no disk at all"))
	g.add("x", workflow.ImageSpec{URL: "/x", Format: "raw"})
	i := g.ready("x", []byte("no disk at all"))
	g.add("direct", workflow.ImageSpec{URL: "/direct", Direct: true})
	g.kept(i.Status.Source.Digest)
	if slices.Contains(g.asked, "/direct") {
		t.Error("a direct image was fetched")
	}
}

func cut(b []byte) []byte { return b[:len(b)-70_000] }
