package ipxe

import (
	"path/filepath"
	"testing"
)

func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "boot/snponly.efi", "mine")
	write(t, dir, "boot/vendor/ipxe-shimx64.efi", "theirs")
	write(t, dir, "initramfs/fw.cpio", "070701AA")
	list, err := newAssets(builtin(), dir).List()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Listed{}
	for _, l := range list {
		got[l.File] = l
	}
	for name, want := range map[string]struct {
		path     string
		size     int64
		replaces string
	}{
		"snponly.efi":             {"boot/snponly.efi", 4, "ipxe"},
		"vendor/ipxe-shimx64.efi": {"boot/vendor/ipxe-shimx64.efi", 6, ""},
		"initramfs/fw.cpio":       {"initramfs/fw.cpio", 8, ""},
	} {
		l := got[name]
		var replaces string
		if l.Replaces != nil {
			replaces = l.Replaces.Package
		}
		if l.Path != filepath.Join(dir, want.path) || l.Size != want.size || l.Modified.IsZero() || len(l.SHA256) != 64 || replaces != want.replaces {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if len(list) != 3 { // builtin knows where one of its files is from, and that one is replaced
		t.Errorf("%d files", len(list))
	}
	list, err = newAssets(builtin(), t.TempDir()).List()
	if err != nil || len(list) != 1 || list[0].Package != "ipxe" || list[0].Size != int64(len("embedded snponly.efi")) || list[0].Path != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
