package efiboot

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// firmware makes a folder that stands for efivarfs.
func firmware(t *testing.T, variables map[string]string) Variables {
	t.Helper()
	v := Variables(t.TempDir())
	for name, data := range variables {
		if err := os.WriteFile(v.file(name), []byte("\x07\x00\x00\x00"+data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// content reads all variables back, without their attributes, which must be right.
func content(t *testing.T, v Variables) map[string]string {
	t.Helper()
	files, err := filepath.Glob(string(v) + "/*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		data, ok := bytes.CutPrefix(b, []byte("\x07\x00\x00\x00"))
		if !ok {
			t.Errorf("%s: attributes %x", f, b)
		}
		out[strings.TrimSuffix(filepath.Base(f), global)] = string(data)
	}
	return out
}

func encoded(t *testing.T, o Option) string {
	t.Helper()
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSetNext(t *testing.T) {
	t.Parallel()
	ours := encoded(t, diskOption())
	old := esp
	old.Number, old.GUID = 1, [16]byte{1}
	stale := encoded(t, Disk("Rackstrap disk", old, `\EFI\BOOT\BOOTX64.EFI`))
	other := encoded(t, Disk("debian", old, `\EFI\debian\shimx64.efi`))
	for _, tt := range []struct {
		name   string
		before map[string]string
		want   string // the variable
	}{
		{"nothing there", nil, "Boot2A00"},
		{"others there", map[string]string{"Boot0000": other, "Boot2A00": other, "BootOrder": "\x00\x00\x00\x2a"}, "Boot2A01"},
		{"a number in the order without an option", map[string]string{"BootOrder": "\x00\x2a"}, "Boot2A01"},
		{"ours there", map[string]string{"Boot2A00": other, "Boot2A07": ours, "BootOrder": "\x00\x2a"}, "Boot2A07"},
		{"ours of another disk", map[string]string{"Boot0003": stale, "BootOrder": "\x03\x00"}, "Boot0003"},
		{"two of ours", map[string]string{"Boot2A01": stale, "Boot2A02": stale}, "Boot2A01"},
		{"an option that is damaged", map[string]string{"Boot2A00": "x"}, "Boot2A01"},
		{"another next one", map[string]string{"Boot0000": other, "BootNext": "\x00\x00"}, "Boot2A00"},
		{"names that look alike", map[string]string{"Boot+001": ours, "Boot001": ours, "BootCurrent": "\x00\x00"}, "Boot2A00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := firmware(t, tt.before)
			want := map[string]string{}
			maps.Copy(want, tt.before)
			want[tt.want] = ours
			var number [1]uint16
			for i, c := range tt.want[4:] {
				number[0] |= uint16(strings.IndexRune("0123456789ABCDEF", c)) << (12 - 4*i)
			}
			want["BootNext"] = string(binary.LittleEndian.AppendUint16(nil, number[0]))
			for range 2 { // the second time there is nothing new
				got, err := v.SetNext(diskOption())
				if err != nil || got != tt.want {
					t.Fatalf("%s, %v", got, err)
				}
				if have := content(t, v); !maps.Equal(have, want) {
					t.Errorf("variables %q\nwant %q", have, want)
				}
			}
		})
	}
}

func TestSetNextWithoutNumber(t *testing.T) {
	t.Parallel()
	options := map[uint16][]byte{}
	for n := firstNumber; n <= 0xffff; n++ {
		options[uint16(n)] = nil
	}
	if n, err := choose(options, nil, "x"); err == nil {
		t.Errorf("%04X", n)
	}
	delete(options, 0xffff)
	if n, err := choose(options, nil, "x"); err != nil || n != 0xffff {
		t.Errorf("%04X, %v", n, err)
	}
}

// The kernel's protection is taken off; where a file system has no such flag, the
// write just works.
func TestWriteImmutable(t *testing.T) {
	t.Parallel()
	v := firmware(t, map[string]string{"BootNext": "\x00\x00"})
	f, err := os.Open(v.file("BootNext"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Logf("without the flag: %v", err)
	}
	if err := v.write("BootNext", []byte{1, 0}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, v)["BootNext"]; got != "\x01\x00" {
		t.Errorf("%q", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Open(none); err == nil {
		t.Error("opened what is not there")
	}
	if _, err := Variables(none).SetNext(diskOption()); err == nil {
		t.Error("wrote where nothing is")
	}
	v := firmware(t, nil)
	if err := os.Mkdir(v.file("BootNext"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := v.SetNext(diskOption()); err == nil {
		t.Error("wrote a folder")
	}
}

// A folder with something in it is what it is; only an empty one is mounted.
func TestOpen(t *testing.T) {
	t.Parallel()
	v := firmware(t, map[string]string{"BootCurrent": "\x00\x00"})
	if got, err := Open(string(v)); err != nil || got != v {
		t.Errorf("%s, %v", got, err)
	}
}
