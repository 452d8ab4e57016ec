package partition

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

const seedSize = 32 << 20

func mustAdd(t *testing.T, d Disk) Addition {
	t.Helper()
	a, err := Add(d, "cidata", seedSize)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAdd: the tools of others find the partition and no fault, on a disk that is
// larger than the image, and growing leaves it alone.
func TestAdd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		args   []string
		to     int64 // MiB
		number int
		grown  int64 // last of the image, MiB
	}{
		{"larger disk", []string{"-n1:1M:+1M", "-n2:2M:+20M"}, 200, 3, 165},
		{"numbers with gaps", []string{"-n1:20M:+10M", "-n14:1M:+4M"}, 128, 15, 75},
		{"just room", []string{"-n1:1M:+30M"}, 64, 2, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := disk(t, 64)
			tool(t, "", "sgdisk", append(tt.args, path)...)
			if err := os.Truncate(path, tt.to<<20); err != nil {
				t.Fatal(err)
			}
			d, f := open(t, path, 512)
			a := mustAdd(t, d)
			if a.Existed || a.Number != tt.number || a.End-a.Start != seedSize || a.End != (tt.to-1)<<20 {
				t.Errorf("added %+v", a.Entry)
			}
			apply(t, f, Growth{Writes: a.Writes})
			for range 2 { // before it grows and after
				if out := tool(t, "", "sgdisk", "-v", path); !strings.Contains(out, "No problems found") {
					t.Errorf("sgdisk -v:\n%s", out)
				}
				out := tool(t, "", "sgdisk", fmt.Sprintf("-i%d", tt.number), path)
				if !strings.Contains(out, "Partition name: 'cidata'") || !strings.Contains(out, "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7") {
					t.Errorf("sgdisk -i:\n%s", out)
				}
				again := mustAdd(t, d)
				if !again.Existed || len(again.Writes) != 0 || again.Entry != a.Entry {
					t.Errorf("again: %+v, %d writes", again.Entry, len(again.Writes))
				}
				g, err := Grow(d)
				if err != nil || g.Number == tt.number || g.After != tt.grown<<20 {
					t.Errorf("grow: %+v, %v", g, err)
				}
				apply(t, f, g)
			}
		})
	}
}

// Power may fail at each moment: what is left can be read, and adding again ends in
// the same table.
func TestAddPowerCut(t *testing.T) {
	t.Parallel()
	path := disk(t, 3)
	tool(t, "", "sgdisk", "-n1:1M:+1M", path)
	small, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start := append(small, make([]byte, 40<<20)...)
	want := ramDisk(bytes.Clone(start))
	all := mustAdd(t, want.disk()).Writes
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
			t.Fatalf("%d of %d pieces: %v", n, len(pieces), err)
		}
		cut.apply(mustAdd(t, cut.disk()).Writes)
		if !bytes.Equal(cut, want) {
			t.Fatalf("%d of %d pieces: another table than without the power cut", n, len(pieces))
		}
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	empty := disk(t, 64)
	mbr := disk(t, 64)
	tool(t, "label: dos\nstart=2048, size=20480, type=83\n", "sfdisk", "-q", mbr)
	full := disk(t, 64)
	tool(t, "", "sgdisk", "-n1:1M:+40M", full)
	last := disk(t, 64)
	tool(t, "", "sgdisk", "-n128:1M:+4M", last)
	for path, says := range map[string]string{
		empty: ErrNone.Error(), mbr: "has an MBR", full: "33554432 are needed", last: "no entry left after number 128",
	} {
		d, _ := open(t, path, 512)
		if _, err := Add(d, "cidata", seedSize); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	d, _ := open(t, empty, 512)
	if _, err := Add(d, "cidata", seedSize); !errors.Is(err, ErrNone) {
		t.Errorf("%v is not ErrNone", err)
	}
}
