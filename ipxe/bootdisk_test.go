package ipxe

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func tool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatalf("%s is not installed (apt-get install %s)", name, pkg)
		}
		t.Skipf("%s is not installed (apt-get install %s)", name, pkg)
	}
	return path
}

// TestBootDisk lets others read the file systems that we make: files of sizes around
// those of sectors, small disks and one of 40 MB.
func TestBootDisk(t *testing.T) {
	t.Parallel()
	fsck, mcopy := tool(t, "fsck.fat", "dosfstools"), tool(t, "mcopy", "mtools")
	server := netip.MustParseAddr("10.0.0.1")
	for name, sizes := range map[string][2]int{
		"even": {512, 1024}, "odd": {511, 513}, "by one": {1, 2}, "by three": {3, 2<<20 + 5}, "large": {4 << 20, 25<<20 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shim, grub := strings.Repeat("shim", sizes[0])[:sizes[0]], strings.Repeat("grub", sizes[1])[:sizes[1]]
			write(t, dir, "boot/shimaa64.efi", shim)
			write(t, dir, "boot/grubaa64.efi", grub)
			d, err := newAssets(builtin(), dir).bootDisk("shimaa64.img", server)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			img := filepath.Join(dir, "disk.img")
			b, err := io.ReadAll(d)
			if err != nil || len(b)%fatSector != 0 || int64(len(b)) != d.Size() {
				t.Fatalf("%d bytes, size %d, %v", len(b), d.Size(), err)
			}
			if err := os.WriteFile(img, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.Command(fsck, "-n", "-v", img).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, said)
			}
			config, err := execute("bootdisk.grub.tmpl", &view{Host: server.String()})
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]string{"EFI/BOOT/BOOTAA64.EFI": shim, "EFI/BOOT/GRUBAA64.EFI": grub, "GRUB/GRUB.CFG": string(config)} {
				got, err := exec.Command(mcopy, "-i", img, "::/"+path, "-").Output()
				if err != nil || !bytes.Equal(got, []byte(want)) {
					t.Errorf("%s: %d bytes, %v, want %d", path, len(got), err, len(want))
				}
			}
		})
	}
}

// The same files make the same disk, so that a range of it can be asked for later.
func TestBootDiskIsTheSame(t *testing.T) {
	t.Parallel()
	a := newAssets(builtin(), t.TempDir())
	sum := func(server string) string {
		d, err := a.bootDisk("shimx64.img", netip.MustParseAddr(server))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		s, err := d.SHA256()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, again, other := sum("10.0.0.1"), sum("10.0.0.1"), sum("10.0.0.2")
	if first != again {
		t.Errorf("the same disk has the checksums %s and %s", first, again)
	}
	if first == other {
		t.Errorf("disks with two addresses have the same checksum %s", first)
	}
}

func TestBootDiskWithoutAssets(t *testing.T) {
	t.Parallel()
	a := newAssets(os.DirFS(t.TempDir()), t.TempDir())
	if _, err := a.bootDisk("shimx64.img", netip.MustParseAddr("10.0.0.1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no shim: %v", err)
	}
	if _, err := newAssets(builtin(), t.TempDir()).bootDisk("shimx64.img", netip.Addr{}); err == nil {
		t.Error("a disk that nobody can boot was made")
	}
}
