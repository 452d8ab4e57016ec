package qcow2_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/store/image/qcow2"
)

// qemuImg runs qemu-img in dir.
func qemuImg(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("qemu-img", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("RACKSTRAP_TEST_NOSKIP") != "1" {
			t.Skip("qemu-img is not installed (apt-get install qemu-utils)")
		}
		t.Fatalf("qemu-img %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// disk writes a raw disk of some MiB: noise, text, and zeros; and a last part that
// fills no cluster.
func disk(t testing.TB, dir string) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 9<<20+3*512)
	for i := range 700_000 {
		b[1<<20+i] = byte(rng.Uint32())
	}
	for i := 3 << 20; i < 5<<20; i += 16 {
		copy(b[i:], fmt.Sprintf("line %10d\n", i))
	}
	copy(b[len(b)-700:], "the end of the disk")
	if err := os.WriteFile(filepath.Join(dir, "disk.raw"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// read is the whole disk of a qcow2 file.
func read(file []byte) ([]byte, error) {
	q, err := qcow2.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var out []byte
	for {
		data, zeros, err := q.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(append(out, data...), make([]byte, zeros)...)
	}
}

func load(t testing.TB, name ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(name...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLikeQemu: every variant that qemu-img writes reads as qemu-img reads it.
func TestLikeQemu(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw := disk(t, dir)
	for name, args := range map[string][]string{
		"v3":              {"-o", "compat=1.1"},
		"v2":              {"-o", "compat=0.10"},
		"small-clusters":  {"-o", "cluster_size=512"},
		"large-clusters":  {"-o", "cluster_size=2M"},
		"deflate":         {"-c"},
		"deflate-v2":      {"-c", "-o", "compat=0.10"},
		"deflate-2M":      {"-c", "-o", "cluster_size=2M"},
		"deflate-512":     {"-c", "-o", "cluster_size=512"},
		"zstd":            {"-c", "-o", "compression_type=zstd"},
		"zstd-2M":         {"-c", "-o", "compression_type=zstd,cluster_size=2M"},
		"lazy":            {"-o", "lazy_refcounts=on"},
		"refcount-1":      {"-o", "refcount_bits=1"},
		"preallocated":    {"-o", "preallocation=metadata"},
		"fully-allocated": {"-S", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			qemuImg(t, dir, append(append([]string{"convert", "-O", "qcow2"}, args...), "disk.raw", name)...)
			got, err := read(load(t, dir, name))
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%d bytes of %d, %v", len(got), len(raw), err)
			}
		})
	}
}

// TestWrittenTo: zero clusters, discarded ones and an internal snapshot, compared
// with what qemu-img converts.
func TestWrittenTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk(t, dir)
	qemuImg(t, dir, "convert", "-O", "qcow2", "disk.raw", "x")
	qemuImg(t, dir, "snapshot", "-c", "before", "x")
	cmd := exec.Command("qemu-io", "-c", "write -z 1M 128k", "-c", "discard 3M 512k", "-c", "write -P 0xab 7M 100k", "-c", "write -z -u 4M 64k", filepath.Join(dir, "x"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	qemuImg(t, dir, "convert", "-O", "raw", "x", "want")
	got, err := read(load(t, dir, "x"))
	if want := load(t, dir, "want"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk(t, dir)
	qemuImg(t, dir, "convert", "-O", "qcow2", "disk.raw", "good")
	qemuImg(t, dir, "create", "-f", "qcow2", "-b", "good", "-F", "qcow2", "backing")
	qemuImg(t, dir, "create", "-f", "qcow2", "-o", "data_file=data", "external", "10M")
	qemuImg(t, dir, "create", "-f", "qcow2", "-o", "extended_l2=on", "extended", "10M")
	qemuImg(t, dir, "create", "-f", "qcow2", "--object", "secret,id=s,data=x", "-o", "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10", "luks", "10M")
	qemuImg(t, dir, "convert", "-O", "qcow2", "-c", "disk.raw", "packed")
	good, packed := load(t, dir, "good"), load(t, dir, "packed")
	be := binary.BigEndian
	with := func(file []byte, change func(b []byte)) []byte {
		b := bytes.Clone(file)
		change(b)
		return b
	}
	l1 := be.Uint64(good[40:])
	l2 := be.Uint64(good[l1:]) & 0x00fffffffffffe00
	used := 16 * 8 // the entry of the first MiB's cluster
	for name, tc := range map[string]struct {
		file []byte
		err  error
		text string
	}{
		"backing":         {load(t, dir, "backing"), qcow2.ErrUnsupported, `a backing file ("good")`},
		"external data":   {load(t, dir, "external"), qcow2.ErrUnsupported, "external data file"},
		"extended L2":     {load(t, dir, "extended"), qcow2.ErrUnsupported, "extended L2 entries"},
		"LUKS":            {load(t, dir, "luks"), qcow2.ErrUnsupported, "encrypted with LUKS"},
		"AES":             {with(good, func(b []byte) { b[35] = 1 }), qcow2.ErrUnsupported, "encrypted with AES"},
		"dirty":           {with(good, func(b []byte) { b[79] |= 1 }), qcow2.ErrUnsupported, "not closed cleanly"},
		"marked corrupt":  {with(good, func(b []byte) { b[79] |= 2 }), qcow2.ErrUnsupported, "marked as corrupt"},
		"unknown feature": {with(good, func(b []byte) { b[73] |= 0x40 }), qcow2.ErrUnsupported, "bit 54"},
		"named feature": {with(good, func(b []byte) {
			b[79] |= 0x20
			at := bytes.Index(b, []byte{0x68, 0x03, 0xf8, 0x57}) + 8
			copy(b[at:], append([]byte{0, 5}, "quantum entanglement\x00"...))
		}), qcow2.ErrUnsupported, `"quantum entanglement" (bit 5)`},
		"compression":    {with(good, func(b []byte) { b[79] |= 8; b[104] = 7 }), qcow2.ErrUnsupported, "compression type is 7"},
		"version 4":      {with(good, func(b []byte) { b[7] = 4 }), qcow2.ErrUnsupported, "version 4"},
		"empty":          {nil, qcow2.ErrCorrupt, "no qcow2 header"},
		"not qcow2":      {[]byte(strings.Repeat("x", 4096)), qcow2.ErrCorrupt, "no qcow2 header"},
		"tiny clusters":  {with(good, func(b []byte) { b[23] = 8 }), qcow2.ErrCorrupt, "2^8 bytes"},
		"huge clusters":  {with(good, func(b []byte) { b[23] = 60 }), qcow2.ErrCorrupt, "2^60 bytes"},
		"huge disk":      {with(good, func(b []byte) { b[24] = 0x7f }), qcow2.ErrUnsupported, "the limit is"},
		"short L1":       {with(good, func(b []byte) { be.PutUint64(b[24:], 1<<40) }), qcow2.ErrCorrupt, "L1 table has 1 entries"},
		"L1 elsewhere":   {with(good, func(b []byte) { be.PutUint64(b[40:], 1<<62) }), qcow2.ErrTruncated, "L1 table ends"},
		"L1 unaligned":   {with(good, func(b []byte) { be.PutUint64(b[40:], l1+8) }), qcow2.ErrCorrupt, "within a cluster"},
		"header's end":   {with(good, func(b []byte) { be.PutUint32(b[100:], 1<<31) }), qcow2.ErrCorrupt, "header has"},
		"L1 entry":       {with(good, func(b []byte) { b[l1+7] |= 3 }), qcow2.ErrCorrupt, "reserved bits"},
		"L2 elsewhere":   {with(good, func(b []byte) { be.PutUint64(b[l1:], 1<<50) }), qcow2.ErrTruncated, "L2 table 0 ends"},
		"L2 entry":       {with(good, func(b []byte) { b[l2+uint64(used)+7] |= 2 }), qcow2.ErrCorrupt, "reserved bits"},
		"cluster":        {with(good, func(b []byte) { be.PutUint64(b[l2+uint64(used):], 1<<50) }), qcow2.ErrTruncated, "the cluster ends"},
		"cut in half":    {good[:len(good)/2], qcow2.ErrTruncated, "the file"},
		"cut in header":  {good[:90], qcow2.ErrTruncated, "header"},
		"packed, cut":    {packed[:len(packed)-100_000], nil, ""},
		"packed, broken": {with(packed, func(b []byte) { clear(b[len(b)-9000:][:8000]) }), qcow2.ErrCorrupt, "compressed bytes"},
	} {
		got, err := read(tc.file)
		if err == nil || (tc.err != nil && !errors.Is(err, tc.err)) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// TestEveryCut: however short a file is cut, it is never a whole disk.
func TestEveryCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	if err := os.WriteFile(filepath.Join(dir, "r"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	qemuImg(t, dir, "convert", "-O", "qcow2", "-o", "cluster_size=4096", "r", "q")
	whole := load(t, dir, "q")
	for n := 0; n < len(whole); n += 509 {
		if _, err := read(whole[:n]); err == nil {
			t.Fatalf("cut at %d of %d it is a disk", n, len(whole))
		}
	}
}

// TestMemory: the reader's memory does not depend on the disk.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	disk(t, dir)
	qemuImg(t, dir, "convert", "-c", "-O", "qcow2", "disk.raw", "x")
	qemuImg(t, dir, "resize", "x", "8T")
	f, err := os.Open(filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	q, err := qcow2.NewReader(f, st.Size())
	var total int64
	for err == nil {
		var data []byte
		var zeros int64
		data, zeros, err = q.Next()
		total += int64(len(data)) + zeros
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; err != io.EOF || total != 8<<40 || q.Size() != total || got > 4<<20 {
		t.Errorf("%d bytes of disk, %d bytes allocated, %v", total, got, err)
	}
}

// FuzzReader: whatever the file says, the disk has the size that it says, or there
// is an error.
func FuzzReader(f *testing.F) {
	dir := f.TempDir()
	raw := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	if err := os.WriteFile(filepath.Join(dir, "r"), raw, 0o600); err != nil {
		f.Fatal(err)
	}
	for i, args := range [][]string{{"-o", "cluster_size=512"}, {"-c", "-o", "cluster_size=512"}, {"-c", "-o", "cluster_size=4096,compression_type=zstd"}, {"-o", "compat=0.10,cluster_size=512"}} {
		name := fmt.Sprint(i)
		qemuImg(f, dir, append(append([]string{"convert", "-O", "qcow2"}, args...), "r", name)...)
		f.Add(load(f, dir, name))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		q, err := qcow2.NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			if !errors.Is(err, qcow2.ErrCorrupt) && !errors.Is(err, qcow2.ErrTruncated) && !errors.Is(err, qcow2.ErrUnsupported) {
				t.Fatalf("an error of nobody: %v", err)
			}
			return
		}
		defer q.Close()
		var total int64
		for parts := 0; parts < 4096; parts++ {
			data, zeros, err := q.Next()
			total += int64(len(data)) + zeros
			if total != q.Pos() && err == nil {
				t.Fatalf("at %d after %d bytes", q.Pos(), total)
			}
			if err == io.EOF && total != q.Size() {
				t.Fatalf("%d bytes of %d", total, q.Size())
			}
			if err != nil {
				return
			}
			if (data == nil) == (zeros == 0) || total > q.Size() {
				t.Fatalf("a part of %d bytes and %d zeros", len(data), zeros)
			}
		}
	})
}
