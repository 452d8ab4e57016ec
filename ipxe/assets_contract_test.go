package ipxe

import (
	"io/fs"
	"os"
	"runtime"
	"testing"
)

// magics are the bytes that firmware or the kernel looks for: "MZ" of a PE
// file, "HdrS" of the Linux boot protocol at 0x202
// (Documentation/x86/boot.rst), "ARM\x64" at 0x38 of an arm64 Image
// (Documentation/arm64/booting.rst), a zstd frame (RFC 8878 section 3.1.1), a jump
// at the start of a PXE boot program.
var magics = map[string]struct {
	off   int64
	magic string
}{
	"undionly.kpxe":   {0, "\xea"},
	"snponly.efi":     {0, "MZ"},
	"ipxe.efi":        {0, "MZ"},
	"shimx64.efi":     {0, "MZ"},
	"grubx64.efi":     {0, "MZ"},
	"vmlinuz-amd64":   {0x202, "HdrS"},
	"initramfs-amd64": {0, zst},
	"shimaa64.efi":    {0, "MZ"},
	"grubaa64.efi":    {0, "MZ"},
	"vmlinuz-arm64":   {0x38, "ARM\x64"},
	"initramfs-arm64": {0, zst},
}

// TestEmbeddedAssets binds what DHCP, TFTP and HTTP name to what was embedded.
func TestEmbeddedAssets(t *testing.T) {
	t.Parallel()
	if _, err := fs.Stat(embedded, "embedded/provenance.json"); err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal("no boot assets are embedded (run `make assets`)")
		}
		t.Skip("no boot assets are embedded (run `make assets`)")
	}
	a := NewAssets(t.TempDir())
	for arch := range archAssets {
		if err := a.Missing(arch); err != nil {
			t.Fatal(err)
		}
	}
	list, err := a.Provenance()
	if err != nil {
		t.Fatal(err)
	}
	origin := map[string]Provenance{}
	for _, p := range list {
		origin[p.File] = p
	}
	for _, name := range AssetNames() {
		f, err := a.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		m := magics[name]
		head := make([]byte, len(m.magic))
		if _, err := f.ReadAt(head, m.off); err != nil || m.magic == "" || string(head) != m.magic {
			t.Errorf("%s: bytes %q at %#x, error %v, want %q", name, head, m.off, err, m.magic)
		}
		sum, err := f.SHA256()
		p := origin[name]
		if err != nil || sum != p.SHA256 {
			t.Errorf("%s: sha256 %s, error %v, provenance says %q", name, sum, err, p.SHA256)
		}
		if p.Package == "" || p.Version == "" || p.Licence == "" || (p.Source != SourceDebian && p.Source != SourceBuilt) {
			t.Errorf("%s: incomplete provenance %+v", name, p)
		}
	}
}

// Opening an initramfs of tens of megabytes must not copy it to the heap: many
// machines boot at once.
func TestOpenDoesNotCopy(t *testing.T) {
	a := NewAssets(t.TempDir())
	name := AssetNames()[0]
	if f, err := a.Open(name); err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal(err)
		}
		t.Skip("no boot assets are embedded (run `make assets`)")
	} else {
		f.Close()
	}
	for _, name := range []string{"initramfs-amd64", "vmlinuz-amd64", "vmlinuz-arm64"} {
		const opens = 16
		if f, err := a.Open(name); err != nil { // the first time may unpack it
			t.Fatal(err)
		} else {
			f.Close()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range opens {
			f, err := a.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / opens; got > 64<<10 {
			t.Errorf("opening %s allocates %d bytes", name, got)
		}
	}
}
