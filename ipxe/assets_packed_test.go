package ipxe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
)

// packedKernel is embedded packed, and nothing else is embedded.
func packedKernel(t *testing.T, content []byte) fstest.MapFS {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return fstest.MapFS{
		"vmlinuz-arm64.zst": {Data: z.EncodeAll(content, nil)},
		"provenance.json": {Data: fmt.Appendf(nil,
			`[{"file":"vmlinuz-arm64","package":"linux","version":"1","sha256":"%x","size":%d,"licence":"GPL-2","source":"debian"}]`, sum, len(content))},
	}
}

// What is embedded packed is served as it was before: by whom it is asked for first,
// how often and at once does not matter.
func TestOpenPacked(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("kernel\x00"), 100_000)
	sum := sha256.Sum256(content)
	for name, dir := range map[string]string{"on the disk": t.TempDir(), "in memory": filepath.Join(t.TempDir(), "no such folder")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAssets(packedKernel(t, content), dir)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					f, err := a.Open("vmlinuz-arm64")
					if err != nil {
						t.Error(err)
						return
					}
					got := make([]byte, f.Size())
					if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, content) {
						t.Errorf("%d bytes, error %v", len(got), err)
					}
					if s, err := f.SHA256(); err != nil || s != hex.EncodeToString(sum[:]) {
						t.Errorf("sha256 %s, error %v", s, err)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if left, err := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left in the folder: %v, %v", left, err)
			}
			if _, err := a.Open("vmlinuz-arm64.zst"); err == nil {
				t.Error("the packed file is served as well")
			}
		})
	}
}

// Whether a packed file is there is known without unpacking it.
func TestMissingUnpacksNothing(t *testing.T) {
	t.Parallel()
	m := builtin()
	delete(m, "vmlinuz-arm64")
	m["vmlinuz-arm64.zst"] = &fstest.MapFile{Data: []byte("no zstd frame")}
	dir := t.TempDir()
	if err := newAssets(m, dir).Missing("arm64"); err != nil {
		t.Error(err)
	}
	if _, err := newAssets(m, dir).Open("vmlinuz-arm64"); err == nil || !strings.Contains(err.Error(), "vmlinuz-arm64") {
		t.Errorf("a damaged one opens: %v", err)
	}
	write(t, dir, "boot/vmlinuz-arm64", "mine")
	if got := read(t, newAssets(m, dir), "vmlinuz-arm64"); got != "mine" {
		t.Errorf("read %q", got)
	}
}

// What is listed at every start, and whenever somebody asks, unpacks nothing either.
func TestListUnpacksNothing(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("kernel\x00"), 1000)
	a := newAssets(packedKernel(t, content), t.TempDir())
	list, err := a.List()
	if err != nil || len(list) != 1 || list[0].File != "vmlinuz-arm64" || list[0].Size != int64(len(content)) {
		t.Errorf("%+v, %v", list, err)
	}
	if len(a.unpacked.files) != 0 {
		t.Error("the list unpacked the kernel")
	}
	if got := read(t, a, "vmlinuz-arm64"); got != string(content) || len(a.unpacked.files) != 1 {
		t.Errorf("%d bytes are served, %d files unpacked", len(got), len(a.unpacked.files))
	}
}

// A packed file that is not the one of provenance.json is not served.
func TestPackedIsSealed(t *testing.T) {
	t.Parallel()
	m := packedKernel(t, []byte("kernel"))
	m["vmlinuz-arm64.zst"] = packedKernel(t, []byte("another"))["vmlinuz-arm64.zst"]
	a := newAssets(m, t.TempDir())
	if _, err := a.Open("vmlinuz-arm64"); err == nil || !strings.Contains(err.Error(), "provenance.json does not say") {
		t.Errorf("error %v", err)
	}
	delete(m, "vmlinuz-arm64.zst")
	if _, err := a.Open("vmlinuz-arm64"); err == nil || !strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Errorf("error %v", err)
	}
}
