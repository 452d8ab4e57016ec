package efiboot

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files; the test still fails")

// esp is the partition of the golden file.
var esp = Partition{Number: 15, Start: 2048, Size: 253952, GUID: [16]byte{
	0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
}}

func diskOption() Option { return Disk("Rackstrap disk", esp, `\EFI\BOOT\BOOTX64.EFI`) }

// goldens are the load options in testdata by file, as hex in lines; what is after
// a # is a comment.
func goldens(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var digits strings.Builder
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			digits.WriteString(strings.Join(strings.Fields(line), ""))
		}
		b, err := hex.DecodeString(digits.String())
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[filepath.Base(f)] = b
	}
	return out
}

func TestDiskOptionIsGolden(t *testing.T) {
	t.Parallel()
	const name = "disk.hex"
	got, err := diskOption().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if want := goldens(t)[name]; bytes.Equal(got, want) {
		return
	}
	t.Errorf("the option is\n%s", hex.Dump(got))
	if *update {
		if err := os.WriteFile("testdata/"+name, []byte(hex.EncodeToString(got)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	o, err := Decode(goldens(t)["disk.hex"])
	if err != nil {
		t.Fatal(err)
	}
	if o.Attributes != Active || o.Description != "Rackstrap disk" || len(o.Paths) != 1 || len(o.Paths[0]) != 2 || len(o.Data) != 0 {
		t.Fatalf("%+v", o)
	}
	if p, ok := o.Paths[0][0].Partition(); !ok || p != esp {
		t.Errorf("partition %+v, %t", p, ok)
	}
	if f, ok := o.Paths[0][1].File(); !ok || f != `\EFI\BOOT\BOOTX64.EFI` {
		t.Errorf("file %q, %t", f, ok)
	}
	if _, ok := o.Paths[0][1].Partition(); ok {
		t.Error("a file is no partition")
	}
	if _, ok := o.Paths[0][0].File(); ok {
		t.Error("a partition is no file")
	}
}

// An option of OVMF for a network card: PCI nodes, a MAC, IPv4, and vendor's data.
func TestDecodeOfFirmware(t *testing.T) {
	t.Parallel()
	o, err := Decode(goldens(t)["ovmf-pxe.hex"])
	if err != nil {
		t.Fatal(err)
	}
	var kinds [][2]byte
	for _, n := range o.Paths[0] {
		kinds = append(kinds, [2]byte{n.Type, n.Subtype})
	}
	if want := [][2]byte{{2, 1}, {1, 1}, {3, 11}, {3, 12}}; !reflect.DeepEqual(kinds, want) || len(o.Data) != 16 {
		t.Errorf("%q: nodes %v, want %v, and %d bytes of data", o.Description, kinds, want, len(o.Data))
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	good := goldens(t)["disk.hex"]
	change := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return b
	}
	const path = 6 + 2*15
	for name, b := range map[string][]byte{
		"empty":                    {},
		"short":                    good[:5],
		"description without end":  good[:20],
		"half a surrogate pair":    change(6, 0x00, 0xd8),
		"paths longer than option": good[:len(good)-1],
		"node shorter than header": change(path+2, 3, 0),
		"node longer than paths":   change(path+2, 0xff, 0),
		"no end node":              change(len(good)-4, 0x7e),
		"long end node":            change(path, 0x7f, 0xff),
	} {
		if o, err := Decode(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	long := Node{Data: make([]byte, 40000)}
	for name, p := range map[string]Path{
		"one node":  {{Data: make([]byte, 65532)}},
		"two nodes": {long, long},
	} {
		if _, err := (Option{Paths: []Path{p}}).Encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What decodes encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	for _, b := range goldens(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x\nbecomes\n%x", b, again)
		}
		for _, p := range o.Paths {
			for _, n := range p {
				if p, ok := n.Partition(); ok && !reflect.DeepEqual(p.Node(), n) {
					t.Fatalf("%+v becomes %+v", n, p.Node())
				}
				if f, ok := n.File(); ok && !reflect.DeepEqual(FileNode(f), n) {
					t.Fatalf("%+v becomes %+v", n, FileNode(f))
				}
			}
		}
	})
}
