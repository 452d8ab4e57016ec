package fat

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool runs a program that judges or reads the file system.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func seed(n int) []File {
	return []File{
		{"meta-data", []byte("instance-id: x\n")},
		{"user-data", bytes.Repeat([]byte("v1: é\r\n"), n)},
		{"network-config", nil},
		{"vendor-data", []byte("no newline at the end")},
		{strings.Repeat("long-name.", 12) + "x", bytes.Repeat([]byte{0}, 2048)},
	}
}

// TestMake lets the tools that others use judge what was made and read it.
func TestMake(t *testing.T) {
	t.Parallel()
	for _, sector := range []int{512, 4096} {
		for _, n := range []int{0, 1, 256, 40_000} {
			fs, err := Make("cidata", sector, seed(n))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "fs")
			if err := os.WriteFile(file, fs, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, Size); err != nil {
				t.Fatal(err)
			}
			if out := tool(t, "fsck.vfat", "-n", "-v", file); !strings.Contains(out, " 6 files") || strings.Contains(out, "Differences") {
				t.Errorf("fsck.vfat: %s", out)
			}
			if out := tool(t, "blkid", "-p", "-o", "export", file); !strings.Contains(out, "LABEL=cidata\n") || !strings.Contains(out, "TYPE=vfat\n") {
				t.Errorf("blkid: %s", out)
			}
			for _, f := range seed(n) {
				if got := tool(t, "mtype", "-i", file, "::"+f.Name); got != string(f.Content) {
					t.Errorf("%s has %d bytes, want %d", f.Name, len(got), len(f.Content))
				}
			}
			again, err := Make("cidata", sector, seed(n))
			if err != nil || !bytes.Equal(fs, again) {
				t.Errorf("made twice, it differs: %v", err)
			}
		}
	}
}

func TestLayoutIsFAT16(t *testing.T) {
	t.Parallel()
	for _, sector := range []int{512, 4096} {
		if g := layout(sector); g.clusters < minClusters || g.clusters > maxClusters || g.data%sector != 0 {
			t.Errorf("%d: %+v", sector, g)
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		label  string
		sector int
		files  []File
	}{
		"no label":       {"", 512, nil},
		"long label":     {"twelve-chars", 512, nil},
		"odd label":      {"ci/data", 512, nil},
		"odd sector":     {"cidata", 2048, nil},
		"no name":        {"cidata", 512, []File{{}}},
		"a path":         {"cidata", 512, []File{{Name: "a/b"}}},
		"not ASCII":      {"cidata", 512, []File{{Name: "é"}}},
		"twice":          {"cidata", 512, []File{{Name: "a"}, {Name: "a"}}},
		"too large":      {"cidata", 512, []File{{"a", make([]byte, Size)}}},
		"too many":       {"cidata", 512, make([]File, 65)},
		"only a dot":     {"cidata", 512, []File{{Name: "."}}},
		"ends in dot":    {"cidata", 512, []File{{Name: "a."}}},
		"long names":     {"cidata", 512, longNames(64, 200)},
		"one entry more": {"cidata", 512, append(longNames(56, 92), File{Name: strings.Repeat("z", 79)})},
	} {
		if _, err := Make(tc.label, tc.sector, tc.files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// longNames are empty files with names of that many letters.
func longNames(n, letters int) []File {
	var out []File
	for i := range n {
		out = append(out, File{Name: fmt.Sprintf("%0*d", letters, i)})
	}
	return out
}

// TestFullDirectory: a root directory whose last entry is used is still one.
func TestFullDirectory(t *testing.T) {
	t.Parallel()
	files := append(longNames(56, 92), File{strings.Repeat("z", 78), []byte("the last")})
	fs, err := Make("cidata", 512, files)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fs")
	if err := os.WriteFile(file, fs, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, Size); err != nil {
		t.Fatal(err)
	}
	if out := tool(t, "fsck.vfat", "-n", "-v", file); !strings.Contains(out, " 58 files") /* the label, too */ {
		t.Errorf("fsck.vfat: %s", out)
	}
	if got := tool(t, "mtype", "-i", file, "::"+files[56].Name); got != "the last" {
		t.Errorf("the last file is %q", got)
	}
}
