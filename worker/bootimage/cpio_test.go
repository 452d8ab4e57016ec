package bootimage

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func entries() []Entry {
	return []Entry{
		Bytes("lib/modules/6.1/a.ko", 0o644, []byte("content")),
		{Name: "dev/console", Mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, Major: 5, Minor: 1},
		{Name: "dev/vda", Mode: fs.ModeDevice | 0o660, Major: 254},
		{Name: "sbin", Mode: fs.ModeSymlink | 0o777, Link: "bin"},
		Bytes("init", 0o755, []byte("#!\n")),
		Dir("proc"),
	}
}

func archive(t *testing.T, entries []Entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := WriteCPIO(&buf, entries); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestWriteCPIOBytes(t *testing.T) {
	t.Parallel()
	got := archive(t, []Entry{Bytes("init", 0o755, []byte("#!\n"))})
	want := "070701" + "00000001" + "000081ED" + "00000000" + "00000000" + "00000001" + "00000000" + "00000003" +
		"00000000" + "00000000" + "00000000" + "00000000" + "00000005" + "00000000" + "init\x00\x00" + "#!\n\x00" +
		"070701" + "00000000" + "00000000" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" +
		"00000000" + "00000000" + "00000000" + "00000000" + "0000000B" + "00000000" + "TRAILER!!!\x00\x00\x00\x00"
	if string(got) != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestWriteCPIODeterministic(t *testing.T) {
	t.Parallel()
	forward, backward := entries(), entries()
	slices.Reverse(backward)
	a, b := archive(t, forward), archive(t, backward)
	if !bytes.Equal(a, b) {
		t.Error("the order of the entries changed the archive")
	}
	if len(a)%4 != 0 {
		t.Errorf("length %d is not a multiple of 4", len(a))
	}
}

func TestWriteCPIORefuses(t *testing.T) {
	t.Parallel()
	short := Bytes("f", 0o644, []byte("abc"))
	short.Size = 4
	long := Bytes("f", 0o644, []byte("abcde"))
	long.Size = 4
	huge := Bytes("f", 0o644, nil)
	huge.Size = math.MaxUint32 + 1
	broken := Entry{Name: "f", Open: func() (io.ReadCloser, error) { return nil, errors.New("gone") }}
	for want, list := range map[string][]Entry{
		"clean relative":      {Dir("/etc")},
		"not a clean":         {Dir("a/../b")},
		`"." is not`:          {Dir(".")},
		"occurs twice":        {Dir("a"), Dir("a")},
		"f: content is not 4": {short},
		"is not 4 bytes":      {long},
		"do not fit":          {huge},
		"gone":                {broken},
		"has no place":        {{Name: "s", Mode: fs.ModeSocket}},
	} {
		if err := WriteCPIO(io.Discard, list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// cpio(1) is an independent reader of the format.
func TestCPIOReadsIt(t *testing.T) {
	t.Parallel()
	needTool(t, "cpio")
	dir := t.TempDir()
	cmd := exec.Command("cpio", "-idm", "--no-absolute-filenames", "--quiet")
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(archive(t, slices.DeleteFunc(entries(), func(e Entry) bool {
		return e.Mode&fs.ModeDevice != 0 // making nodes needs root
	})))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	for name, want := range map[string]string{"init": "#!\n", "lib/modules/6.1/a.ko": "content"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "init")); err != nil || info.Mode() != 0o755 || info.ModTime().Unix() != 0 {
		t.Errorf("init: %v, %v, want 0755 and time 0", info, err)
	}
	if link, err := os.Readlink(filepath.Join(dir, "sbin")); err != nil || link != "bin" {
		t.Errorf("sbin links to %q, %v", link, err)
	}
}

// needTool skips the test without the program, except where skipping counts as
// failure.
func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
		t.Fatalf("needs the program %s", name)
	}
	t.Skipf("needs the program %s", name)
}
