package catalogue

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// packed is what a packer makes of parts: positive ones are bytes of text, negative
// ones zeros.
func packed(t testing.TB, parts []int64) (out, disk []byte) {
	t.Helper()
	var b bytes.Buffer
	p, err := newPacker(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range parts {
		if n < 0 {
			p.Zero(-n)
			disk = append(disk, make([]byte, -n)...)
			continue
		}
		text := bytes.Repeat([]byte{byte(i), 'x'}, int(n+1)/2)[:n]
		if _, err := p.Write(text); err != nil {
			t.Fatal(err)
		}
		disk = append(disk, text...)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if p.n != int64(len(disk)) {
		t.Errorf("counted %d bytes of %d", p.n, len(disk))
	}
	return b.Bytes(), disk
}

func unpacked(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPacker(t *testing.T) {
	t.Parallel()
	const run = zeroRun
	for _, parts := range [][]int64{
		{},
		{1},
		{-1},
		{512},
		{-512},
		{zeroBlock, -1, zeroBlock + 1},
		{-2 * run},
		{-2*run + 1},
		{5, -2*run - 7, 5},
		{-2 * run, 5},
		{5, -run, 5},
	} {
		b, disk := packed(t, parts)
		if got := unpacked(t, b); !bytes.Equal(got, disk) {
			t.Errorf("%v: %d bytes of %d", parts, len(got), len(disk))
		}
	}
	// zstd itself agrees
	b, disk := packed(t, []int64{100, -4 * run, 100})
	if len(b) > 8<<10 {
		t.Errorf("32 MiB of zeros take %d bytes", len(b))
	}
	cmd := exec.Command("zstd", "-dc")
	cmd.Stdin = bytes.NewReader(b)
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, disk) {
		t.Errorf("zstd: %d bytes of %d, %v", len(out), len(disk), err)
	}
}

func FuzzPacker(f *testing.F) {
	f.Add(uint32(100), uint32(2*zeroRun), uint32(512))
	f.Add(uint32(0), uint32(zeroRun+1), uint32(0))
	f.Fuzz(func(t *testing.T, a, zeros, c uint32) {
		b, disk := packed(t, []int64{int64(a % (1 << 20)), -int64(zeros % (4 * zeroRun)), int64(c % (1 << 20))})
		if !bytes.Equal(unpacked(t, b), disk) {
			t.Error("other bytes come out")
		}
	})
}

// TestMemory: what converting takes does not grow with the disk.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x")
	grow := func(size string) {
		if out, err := exec.Command("qemu-img", "create", "-f", "qcow2", name, size).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		// a boot sector, and noise in the middle
		out, err := exec.Command("qemu-io", "-c", "write -P 0x55 510 1", "-c", "write -P 0xaa 511 1", "-c", "write -P 0x11 100M 8M", name).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var used [2]uint64
	for i, size := range []string{"200M", "50G"} {
		grow(size)
		s, err := image.Open(filepath.Join(dir, size), image.Options{Reserve: -1})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Put(t.Context(), f, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := convert(t.Context(), s, workflow.ImageFile{Digest: b.Digest}, "", func(_, _ int64) {})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		used[i] = after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d MiB allocated, %d KiB packed", size, used[i]>>20, out.rendition.Bytes>>10)
	}
	if used[1] > used[0]+16<<20 || used[1] > 256<<20 {
		t.Errorf("200 MiB take %d MiB of memory, 50 GiB %d MiB", used[0]>>20, used[1]>>20)
	}
}

// BenchmarkConvert measures bytes of disk per second.
func BenchmarkConvert(b *testing.B) {
	disk := make([]byte, 256<<20)
	disk[510], disk[511] = 0x55, 0xaa
	for i := 1 << 20; i < len(disk)/2; i += 64 {
		copy(disk[i:], "package main imports many others; it writes lines of text, "[i>>6&15:])
		disk[i+60] = byte(i * 2654435761 >> 24)
	}
	dir := b.TempDir()
	raw := filepath.Join(dir, "raw")
	if err := os.WriteFile(raw, disk, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, tc := range [][]string{{"raw"}, {"qcow2", "qemu-img", "convert", "-O", "qcow2"}, {"xz", "xz", "-k", "-1"}, {"zst", "zstd", "-q", "-k"}} {
		b.Run(tc[0], func(b *testing.B) {
			name := raw
			if len(tc) > 1 {
				name = raw + "." + tc[0]
				args := append(append([]string{}, tc[2:]...), raw)
				if tc[0] == "qcow2" {
					args = append(args, name)
				}
				if out, err := exec.Command(tc[1], args...).CombinedOutput(); err != nil {
					b.Skipf("%v: %s", err, out)
				}
			}
			s, err := image.Open(filepath.Join(b.TempDir(), "images"), image.Options{Reserve: -1})
			if err != nil {
				b.Fatal(err)
			}
			f, err := os.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			blob, err := s.Put(b.Context(), f, "")
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(disk)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := convert(b.Context(), s, workflow.ImageFile{Digest: blob.Digest}, "", func(_, _ int64) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
