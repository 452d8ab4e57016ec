package ipxe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"
)

// zst starts like a zstd frame.
const zst = "\x28\xb5\x2f\xfd"

func builtin() fstest.MapFS {
	m := fstest.MapFS{
		"README.md":       {Data: []byte("not served")},
		"provenance.json": {Data: []byte(`[{"file":"snponly.efi","package":"ipxe","version":"1","sha256":"x","licence":"GPL-2+","source":"debian"}]`)},
	}
	for _, name := range AssetNames() {
		m[name] = &fstest.MapFile{Data: []byte("embedded " + name)}
	}
	m["initramfs-amd64"] = &fstest.MapFile{Data: []byte(zst + "base!")}
	return m
}

// write makes a file under dir with its folders.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, a *Assets, name string) string {
	t.Helper()
	f, err := a.Open(name)
	if err != nil {
		t.Fatalf("Open(%q): %v", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(data)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "boot/ipxe.efi", "operator's")
	write(t, dir, "boot/arm/snp.efi", "added")
	write(t, dir, "boot/.hidden", "no")
	write(t, dir, "secret", "outside")
	for link, target := range map[string]string{
		"out.efi": "../secret", "abs.efi": filepath.Join(dir, "secret"), "in.efi": "arm/snp.efi",
	} {
		if err := os.Symlink(target, filepath.Join(dir, "boot", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "boot/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAssets(builtin(), dir)
	anyError := errors.New("some other error")
	for name, want := range map[string]struct {
		content string
		err     error
	}{
		"snponly.efi":      {content: "embedded snponly.efi"},
		"/snponly.efi":     {content: "embedded snponly.efi"},
		"ipxe.efi":         {content: "operator's"},
		"arm/snp.efi":      {content: "added"},
		"in.efi":           {content: "added"},
		"nothing.efi":      {err: fs.ErrNotExist},
		"ipxe.efi/x":       {err: fs.ErrNotExist},
		"arm":              {err: fs.ErrNotExist},
		"README.md":        {err: fs.ErrNotExist},
		"provenance.json":  {err: fs.ErrNotExist},
		"out.efi":          {err: anyError},
		"abs.efi":          {err: anyError},
		"fifo":             {err: anyError},
		"":                 {err: ErrAssetName},
		"/":                {err: ErrAssetName},
		".hidden":          {err: ErrAssetName},
		"../secret":        {err: ErrAssetName},
		"arm/../../secret": {err: ErrAssetName},
		"arm//snp.efi":     {err: ErrAssetName},
		`..\secret`:        {err: ErrAssetName},
		"ipxe.efi\x00.txt": {err: ErrAssetName},
		"ipxe.efi\n":       {err: ErrAssetName},
		"\xff\xfe":         {err: ErrAssetName},
	} {
		if want.err == nil {
			if got := read(t, a, name); got != want.content {
				t.Errorf("Open(%q) reads %q, want %q", name, got, want.content)
			}
			continue
		}
		_, err := a.Open(name)
		if err == nil || (want.err != anyError && !errors.Is(err, want.err)) {
			t.Errorf("Open(%q): error %v, want %v", name, err, want.err)
		}
		if want.err == anyError && (errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir)) {
			t.Errorf("Open(%q): error %v, want one that names the file", name, err)
		}
	}
}

func TestInitramfsParts(t *testing.T) {
	t.Parallel()
	base := zst + "base!" // nine bytes, so three of padding
	for name, tc := range map[string]struct {
		parts map[string]string
		want  string
		err   string
	}{
		"none": {want: base},
		"in order, padded": {
			parts: map[string]string{"b.cpio.gz": "\x1f\x8bBBBBB", "a.cpio": "070701AA", "c.cpio.zst": zst + "C"},
			want:  base + "\x00\x00\x00" + "070701AA" + "\x1f\x8bBBBBB\x00" + zst + "C",
		},
		"others are left out": {parts: map[string]string{"README": "x", ".a.cpio": "x", "fw.bin": "x"}, want: base},
		"not what it says":    {parts: map[string]string{"fw.cpio": "\x1f\x8bzipped"}, err: "fw.cpio: starts with"},
		"empty":               {parts: map[string]string{"fw.cpio": ""}, err: "fw.cpio: starts with"},
		"one byte":            {parts: map[string]string{"fw.cpio.xz": "\xfd"}, err: "fw.cpio.xz: starts with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, content := range tc.parts {
				write(t, dir, "initramfs/"+name, content)
			}
			a := newAssets(builtin(), dir)
			if tc.err != "" {
				if _, err := a.Open("initramfs-amd64"); err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one with %q", err, tc.err)
				}
				return
			}
			f, err := a.Open("initramfs-amd64")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := iotest.TestReader(f, []byte(tc.want)); err != nil {
				t.Error(err)
			}
			info, err := f.Stat()
			if err != nil || info.Size() != int64(len(tc.want)) || info.Name() != "initramfs-amd64" || !info.ModTime().IsZero() {
				t.Errorf("Stat: %v, %v, want size %d", info, err, len(tc.want))
			}
			sum := sha256.Sum256([]byte(tc.want))
			for range 2 { // the second time from memory
				if got, err := f.SHA256(); err != nil || got != hex.EncodeToString(sum[:]) {
					t.Errorf("SHA256 %s, %v, want %x", got, err, sum)
				}
			}
		})
	}
}

// A part that changes after it was summed has another checksum.
func TestChecksumFollowsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := newAssets(builtin(), dir)
	sum := func() string {
		f, err := a.Open("initramfs-amd64")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s, err := f.SHA256()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	seen := map[string]bool{sum(): true}
	for i, content := range []string{"070701A", "070701B", "070701CC"} {
		write(t, dir, "initramfs/a.cpio", content)
		stamp := time.Unix(int64(i), 0)
		if err := os.Chtimes(filepath.Join(dir, "initramfs/a.cpio"), stamp, stamp); err != nil {
			t.Fatal(err)
		}
		if s := sum(); seen[s] {
			t.Errorf("content %q has the checksum of an earlier one", content)
		} else {
			seen[s] = true
		}
	}
}

// A file that shrinks under an open asset must not end as a short, valid one.
func TestShrinkingFileIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "boot/ipxe.efi", "twelve bytes")
	f, err := newAssets(builtin(), dir).Open("ipxe.efi")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(filepath.Join(dir, "boot/ipxe.efi"), 5); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func TestServeContentRange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "initramfs/a.cpio", "070701AA")
	f, err := newAssets(builtin(), dir).Open("initramfs-amd64")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	req := httptest.NewRequest(http.MethodGet, "/boot/initramfs-amd64", nil)
	req.Header.Set("Range", "bytes=7-13")
	rec := httptest.NewRecorder()
	http.ServeContent(rec, req, "initramfs-amd64", time.Time{}, f)
	if rec.Code != http.StatusPartialContent || rec.Body.String() != "e!\x00\x00\x0007" {
		t.Errorf("got %d %q", rec.Code, rec.Body)
	}
	if lm := rec.Header().Get("Last-Modified"); lm != "" {
		t.Errorf("Last-Modified: %s, want none", lm)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := newAssets(builtin(), dir).Missing(arch); err != nil {
			t.Errorf("complete: %v", err)
		}
	}
	write(t, dir, "boot/vmlinuz-amd64", "x")
	err := newAssets(fstest.MapFS{"snponly.efi": {}}, dir).Missing("amd64")
	want := "boot files for amd64 missing: undionly.kpxe, ipxe.efi, shimx64.efi, grubx64.efi, initramfs-amd64 " +
		"(run `make assets` and build again, or put them into " + filepath.Join(dir, "boot") + ")"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	write(t, dir, "initramfs/bad.cpio", "x")
	err = newAssets(fstest.MapFS{"snponly.efi": {}}, dir).Missing("arm64")
	if err == nil || !strings.Contains(err.Error(), "boot files for arm64 missing: shimaa64.efi, grubaa64.efi, vmlinuz-arm64, initramfs-arm64 (run") {
		t.Errorf("arm64: %v", err)
	}
	if err := newAssets(builtin(), dir).Missing("riscv64"); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("another architecture: %v", err)
	}
	err = newAssets(builtin(), dir).Missing("amd64")
	if err == nil || !strings.Contains(err.Error(), "bad.cpio") {
		t.Errorf("damaged part: %v", err)
	}
}

func TestProvenance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := newAssets(builtin(), dir)
	list, err := a.Provenance()
	if err != nil || len(list) != 1 || list[0].Source != SourceDebian || list[0].Licence != "GPL-2+" {
		t.Fatalf("embedded: %+v, %v", list, err)
	}
	write(t, dir, "boot/snponly.efi", "mine")
	write(t, dir, "boot/sub/x.efi", "mine")
	write(t, dir, "boot/.git/config", "no")
	write(t, dir, "initramfs/fw.cpio", "070701")
	if err := os.Symlink("sub", filepath.Join(dir, "boot/link")); err != nil {
		t.Fatal(err)
	}
	mine := sha256.Sum256([]byte("mine"))
	fw := sha256.Sum256([]byte("070701"))
	list, err = a.Provenance()
	want := []Provenance{
		{File: "snponly.efi", SHA256: hex.EncodeToString(mine[:]), Source: SourceOperator},
		{File: "sub/x.efi", SHA256: hex.EncodeToString(mine[:]), Source: SourceOperator},
		{File: "initramfs/fw.cpio", SHA256: hex.EncodeToString(fw[:]), Source: SourceOperator},
	}
	if err != nil || len(list) != len(want) {
		t.Fatalf("got %+v, %v", list, err)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("entry %d: %+v, want %+v", i, list[i], want[i])
		}
	}
	damaged := builtin()
	damaged["provenance.json"] = &fstest.MapFile{Data: []byte("{")}
	if list, err = newAssets(damaged, dir).Provenance(); err == nil || len(list) != 3 {
		t.Errorf("damaged provenance.json: %d entries, error %v", len(list), err)
	}
}

// FuzzOpen: whatever the name, what is read lies in the folder or is embedded,
// and a clean name stays as it is.
func FuzzOpen(f *testing.F) {
	seeds := []string{
		"snponly.efi", "/boot.efi", "../secret", "a/../../secret", "..", "/", "", "\\..\\secret", "x\x00y",
		"sub/boot.efi", "sub/./boot.efi", "//boot.efi", "out", "out/secret", "sub/up/secret", "\xff", "initramfs-amd64",
	}
	for _, s := range seeds {
		f.Add(s)
	}
	if len(seeds) == 0 {
		f.Fatal("empty corpus")
	}
	top := f.TempDir()
	data := filepath.Join(top, "data")
	for name, content := range map[string]string{
		"secret": "outside", "data/secret": "outside", "data/boot/boot.efi": "inside", "data/boot/sub/boot.efi": "inside",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(content), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": "..", "sub/up": "../.."} {
		if err := os.Symlink(target, filepath.Join(data, "boot", link)); err != nil {
			f.Fatal(err)
		}
	}
	a := newAssets(builtin(), data)
	f.Fuzz(func(t *testing.T, name string) {
		clean, cleanErr := cleanName(name)
		file, err := a.Open(name)
		if cleanErr != nil {
			if !errors.Is(err, ErrAssetName) {
				t.Fatalf("bad name %q: error %v", name, err)
			}
			return
		}
		if !filepath.IsLocal(clean) || strings.ContainsAny(clean, "\x00\n\\") {
			t.Fatalf("%q cleaned to %q", name, clean)
		}
		if again, err := cleanName(clean); err != nil || again != clean {
			t.Fatalf("%q cleaned to %q, then to %q, %v", name, clean, again, err)
		}
		if err != nil {
			return
		}
		defer file.Close()
		got, err := io.ReadAll(file)
		if err != nil || bytes.Contains(got, []byte("outside")) {
			t.Fatalf("%q reads %q, %v", name, got, err)
		}
	})
}
