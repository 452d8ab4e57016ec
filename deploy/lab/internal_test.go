package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\r\nb\n", "a\nb\n"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor movement is a line end", "a\x1b[05;01Hb\x1b[H", "a\nb\n"},
		{"no empty first line", "\x1b[2J\x1b[1;1Ha", "a"},
		{"lone carriage return", "10%\r20%\r\n", "10%\n20%\n"},
		{"title", "\x1b]0;x\x07a\x1b]0;y\x1b\\b", "ab"},
		{"control characters", "a\x00\x07\x7fb", "ab"},
	} {
		for size := 1; size <= len(tt.in); size++ {
			var e escapes
			var got strings.Builder
			for rest := []byte(tt.in); len(rest) > 0; {
				n := min(size, len(rest))
				got.WriteString(e.strip(rest[:n]))
				rest = rest[n:]
			}
			if got.String() != tt.want {
				t.Errorf("%s in pieces of %d: %q, want %q", tt.name, size, got.String(), tt.want)
			}
		}
	}
}

func TestReadStateRefusesForeignNamespaces(t *testing.T) {
	t.Parallel()
	for _, ns := range []string{"prod", "rs-../../etc", ""} {
		dir := t.TempDir()
		if err := writeState(dir, State{Namespace: "rs-a-1", Namespaces: []string{ns}}); err != nil {
			t.Fatal(err)
		}
		if err := Clean(t.Context(), dir); err == nil {
			t.Errorf("Clean accepted a state with the namespace %q", ns)
		}
	}
}

func tempFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestCachedImage(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "image")
	if _, err := cached(base); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty cache gives %v", err)
	}
	for name, text := range map[string]string{base + ".raw.zst": "1234567", base + ".json": `{"sha256":"ab","size":7,"virtualSize":9}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	img, err := cached(base)
	if err != nil || img.SHA256 != "ab" || img.VirtualSize != 9 || img.Path != base+".raw.zst" {
		t.Errorf("the cache gives %+v, %v", img, err)
	}
	if err := os.Truncate(img.Path, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := cached(base); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a truncated image gives %v", err)
	}
}

func TestLockFileWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() { t.Error("the first one waits") })
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	second, err := lockFile(t.Context(), path, func() { waits++; unlock() })
	if err != nil || waits != 1 {
		t.Fatalf("the second waited %d times, %v", waits, err)
	}
	second()
}

func TestPackageLists(t *testing.T) {
	t.Parallel()
	if recipe := parsePackages(recipePackages); len(recipe) < 10 || !slices.IsSorted(recipe) {
		t.Errorf("the recipe's packages are not a sorted list: %v", recipe)
	}
	if !slices.Contains(Packages(), "qemu-system-x86") {
		t.Errorf("the lab's packages lack QEMU: %v", Packages())
	}
	if got := parsePackages("# all\na # one\n\nb\n"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("parsed %v", got)
	}
}
