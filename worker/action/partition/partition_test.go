package partition

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool runs a partitioning program, or skips the test where it is missing.
func tool(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// disk makes a file of so many MiB.
func disk(t *testing.T, mib int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(mib << 20); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string, sector int) (Disk, *os.File) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return Disk{f, info.Size(), sector}, f
}

func apply(t *testing.T, f *os.File, g Growth) {
	t.Helper()
	for _, w := range g.Writes {
		if _, err := f.WriteAt(w.Data, w.Offset); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGrowGPT(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		args   []string
		to     int64 // MiB
		number int
		before int64
		after  int64
	}{
		{"to a larger disk", []string{"-n1:1M:+1M", "-t1:EF02", "-n2:2M:+10M", "-t2:EF00", "-n3:12M:+20M", "-c3:root"}, 100, 3, 20, 87},
		{"last by position, not number", []string{"-n1:20M:+10M", "-n14:1M:+4M", "-n15:6M:+8M"}, 65, 1, 10, 44},
		{"same size", []string{"-n1:1M:+62M"}, 64, 1, 62, 62},
		{"only the backup moves", []string{"-n1:1M:+62M"}, 65, 1, 62, 63},
		{"huge", []string{"-n1:1M:+1M"}, 3 << 20, 1, 1, 3<<20 - 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := disk(t, 64)
			tool(t, "", "sgdisk", append(tt.args, path)...)
			if err := os.Truncate(path, tt.to<<20); err != nil {
				t.Fatal(err)
			}
			d, f := open(t, path, 512)
			g, err := Grow(d)
			if err != nil {
				t.Fatal(err)
			}
			if g.Scheme != GPT || g.Number != tt.number || g.Before != tt.before<<20 || g.After != tt.after<<20 {
				t.Errorf("%s %d: %d to %d MiB", g.Scheme, g.Number, g.Before>>20, g.After>>20)
			}
			apply(t, f, g)
			if out := tool(t, "", "sgdisk", "-v", path); !strings.Contains(out, "No problems found") {
				t.Errorf("sgdisk -v:\n%s", out)
			}
			if out := tool(t, "", "sfdisk", "--verify", path); !strings.Contains(out, "No errors detected") {
				t.Errorf("sfdisk --verify:\n%s", out)
			}
			again, err := Grow(d)
			if err != nil || len(again.Writes) != 0 {
				t.Errorf("the second time: %v, %d writes", err, len(again.Writes))
			}
			table, err := Read(d)
			if err != nil || table.Scheme != GPT {
				t.Fatal(table, err)
			}
			if e, _ := last(table.Entries); e.Number != tt.number || e.End-e.Start != g.After {
				t.Errorf("read back: %+v", e)
			}
		})
	}
}

// At each moment of the rewrite, also within the entries, power may fail: what is
// left can be read, and growing it ends in the same table.
func TestGrowGPTPowerCut(t *testing.T) {
	t.Parallel()
	path := disk(t, 3)
	tool(t, "", "sgdisk", "-n1:1M:+1M", path)
	small, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	larger := append(small, make([]byte, 2<<20)...)
	grown := ramDisk(bytes.Clone(larger))
	g := mustGrow(t, grown)
	grown.apply(g.Writes)

	// Damaged before: the backup at the end of the disk, or where the image
	// ended, is all that there is.
	rescue := bytes.Clone(grown)
	rescue[512+60] ^= 1
	entries := bytes.Clone(larger)
	entries[1024+60] ^= 1
	// A backup at the end that has yet to grow.
	short := bytes.Clone(small[:3<<20])
	short[1024+60] ^= 1

	for name, start := range map[string][]byte{"whole": larger, "header": rescue, "entries": entries, "not grown": short} {
		want := ramDisk(bytes.Clone(start))
		all := mustGrow(t, want).Writes
		want.apply(all)
		var pieces []Write
		for _, w := range all {
			for at := 0; at < len(w.Data); at += 4096 {
				pieces = append(pieces, Write{w.Offset + int64(at), w.Data[at:min(at+4096, len(w.Data))]})
			}
		}
		for n := range len(pieces) + 1 {
			cut := ramDisk(bytes.Clone(start))
			cut.apply(pieces[:n])
			if _, err := Read(cut.disk()); err != nil {
				t.Fatalf("%s, %d of %d pieces: %v", name, n, len(pieces), err)
			}
			cut.apply(mustGrow(t, cut).Writes)
			if !bytes.Equal(cut, want) {
				t.Fatalf("%s, %d of %d pieces: another table than without the power cut", name, n, len(pieces))
			}
		}
	}
}

// ramDisk is a disk in memory.
type ramDisk []byte

func (r ramDisk) disk() Disk { return Disk{bytes.NewReader(r), int64(len(r)), 512} }

func (r ramDisk) apply(all []Write) {
	for _, w := range all {
		copy(r[w.Offset:], w.Data)
	}
}

func mustGrow(t *testing.T, r ramDisk) Growth {
	t.Helper()
	g, err := Grow(r.disk())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Last also tells of what the disk does not hold.
func TestLast(t *testing.T) {
	t.Parallel()
	gpt := disk(t, 64)
	tool(t, "", "sgdisk", "-n1:40M:+20M", "-n2:1M:+8M", gpt)
	mbr := disk(t, 64)
	tool(t, "label: dos\nstart=2048, size=20480, type=83\nstart=81920, size=40960, type=83\n", "sfdisk", "-q", mbr)
	for path, number := range map[string]int{gpt: 1, mbr: 2} {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{64 << 20, 30 << 20} {
			e, err := Last(ramDisk(whole[:size]).disk())
			if err != nil || e.Number != number || e.End != 60<<20 {
				t.Errorf("%d MiB: %+v, %v", size>>20, e, err)
			}
		}
	}
	if _, err := Last(ramDisk(make([]byte, 1<<20)).disk()); !errors.Is(err, ErrNone) {
		t.Errorf("zeros: %v", err)
	}
}

func TestGrowMBR(t *testing.T) {
	t.Parallel()
	path := disk(t, 64)
	tool(t, "label: dos\nstart=2048, size=20480, type=ef\nstart=22528, size=20480, type=83, bootable\n", "sfdisk", "-q", path)
	if err := os.Truncate(path, 100<<20); err != nil {
		t.Fatal(err)
	}
	d, f := open(t, path, 512)
	g, err := Grow(d)
	if err != nil || g.Scheme != MBR || g.Number != 2 || g.Before != 10<<20 || g.After != 89<<20 {
		t.Fatalf("%+v, %v", g, err)
	}
	apply(t, f, g)
	if out := tool(t, "", "sfdisk", "--verify", path); !strings.Contains(out, "No errors detected") {
		t.Errorf("sfdisk --verify:\n%s", out)
	}
	if again, err := Grow(d); err != nil || len(again.Writes) != 0 {
		t.Errorf("the second time: %v, %d writes", err, len(again.Writes))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	gpt := disk(t, 64)
	tool(t, "", "sgdisk", "-n1:1M:+50M", gpt)
	good, err := os.ReadFile(gpt)
	if err != nil {
		t.Fatal(err)
	}
	foreign := disk(t, 64)
	tool(t, "", "sgdisk", "-n1:1M:+20M", foreign)
	other, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	extended := disk(t, 64)
	tool(t, "label: dos\nstart=2048, size=20480, type=5\n", "sfdisk", "-q", extended)
	ext, err := os.ReadFile(extended)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(all ...int) []byte {
		b := bytes.Clone(good)
		for _, at := range all {
			b[at] ^= 1
		}
		return b
	}
	backup := len(good) - 512
	for _, tt := range []struct {
		name   string
		data   []byte
		sector int
		says   string
	}{
		{"zeros", make([]byte, 1<<20), 512, "no partition table"},
		{"tiny", make([]byte, 512), 512, "no partition table"},
		{"header bit", flip(512+60, backup+60), 512, "header is damaged: wrong CRC, and so is its backup"},
		{"entry bit", flip(1024+60, backup-32*512+60), 512, "entries are damaged: wrong CRC, and so is its backup"},
		{"entry bit, and another table at the end", append(flip(1024 + 60)[:backup-32*512], other[backup-32*512:]...), 512, "entries are damaged"},
		{"cut", good[:40<<20], 512, "larger than the disk"},
		{"cut at the end of the partition", good[:51<<20], 512, "no room for the backup"},
		{"other sector size", good, 4096, "sectors of 512 bytes, the disk has sectors of 4096"},
		{"header gone", append(append(bytes.Clone(good[:512]), make([]byte, 512)...), good[1024:]...), 512, "header is missing"},
		{"extended", ext, 512, "extended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Grow(Disk{bytes.NewReader(tt.data), int64(len(tt.data)), tt.sector})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if strings.HasPrefix(tt.says, "no partition") && !errors.Is(err, ErrNone) {
				t.Errorf("%v is not ErrNone", err)
			}
		})
	}
}

// FuzzGrow: no writes outside the disk, none overlapping the partitions, and
// what was grown is read back and needs no growing.
func FuzzGrow(f *testing.F) {
	seed := make([]byte, 2048)
	copy(seed[510:], "\x55\xaa")
	copy(seed[446+4:], "\x83\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00")
	f.Add(seed, uint8(9))
	gpt, err := os.ReadFile("testdata/gpt.img")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(gpt, uint8(0))
	f.Add(gpt, uint8(8))
	f.Fuzz(func(t *testing.T, data []byte, extra uint8) {
		if len(data) > 4<<20 {
			return
		}
		b := append(bytes.Clone(data), make([]byte, (int(extra)<<20)-len(data)%512+512)...)
		b = b[:len(b)/512*512]
		d := Disk{bytes.NewReader(b), int64(len(b)), 512}
		g, err := Grow(d)
		if err != nil {
			return
		}
		for _, w := range g.Writes {
			if w.Offset < 0 || w.Offset+int64(len(w.Data)) > d.Size || len(w.Data)%512 != 0 {
				t.Fatalf("write outside: %d+%d of %d", w.Offset, len(w.Data), d.Size)
			}
			copy(b[w.Offset:], w.Data)
		}
		if g.After < g.Before {
			t.Fatalf("shrunk from %d to %d", g.Before, g.After)
		}
		again, err := Grow(d)
		if err != nil {
			// A partition over its own table: damaged by growing what was damaged.
			t.Fatalf("grown table: %v", err)
		}
		if len(again.Writes) != 0 {
			t.Fatal("grown twice")
		}
	})
}
