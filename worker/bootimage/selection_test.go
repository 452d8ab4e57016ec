package bootimage

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is a small /lib/modules/VERSION with the ways in which modules need
// each other.
func tree() fstest.MapFS {
	m := fstest.MapFS{
		"modules.dep": {Data: []byte(`kernel/drivers/net/ethernet/realtek/r8169.ko: kernel/drivers/net/phy/libphy.ko
kernel/drivers/net/phy/libphy.ko:
kernel/drivers/net/phy/realtek.ko: kernel/drivers/net/phy/libphy.ko
kernel/drivers/net/wireless/iwl.ko:
kernel/drivers/gpu/drm/drm.ko:
kernel/fs/ext4/ext4.ko: kernel/lib/libcrc32c.ko
kernel/lib/libcrc32c.ko:
kernel/crypto/crc32c_generic.ko:
kernel/arch/x86/crypto/crc32c-intel.ko:
kernel/drivers/scsi/sd_mod.ko:
kernel/drivers/scsi/scsi_debug.ko: kernel/drivers/scsi/sd_mod.ko
`)},
		"modules.alias": {Data: []byte(`# Aliases extracted from modules themselves.
alias pci:v000010ECd00008168sv*sd*bc*sc*i* r8169
alias pci:v00008086d* iwl
alias crc32c crc32c_generic
alias crypto-crc32c crc32c_generic
alias crypto-crc32c crc32c-intel
alias scsi:t-0x00* sd_mod
`)},
		"modules.softdep": {Data: []byte(`# Soft dependencies
softdep r8169 pre: realtek
softdep libcrc32c pre: crypto-crc32c
softdep sd_mod pre: nowhere
softdep iwl pre: sd_mod post: drm
softdep drm ccm gcm
`)},
		"modules.order": {Data: []byte(`kernel/fs/ext4/ext4.ko
kernel/drivers/gpu/drm/drm.ko
kernel/drivers/scsi/sd_mod.ko
`)},
		"modules.builtin":         {Data: []byte("kernel/net/packet/af_packet.ko\nkernel/drivers/input/input-core.ko\n")},
		"modules.builtin.modinfo": {Data: []byte("input_core.license=GPL\x00")},
	}
	for line := range strings.Lines(string(m["modules.dep"].Data)) {
		file, _, _ := strings.Cut(line, ":")
		m[file] = &fstest.MapFile{Data: []byte("ELF " + file)}
	}
	return m
}

func TestSelect(t *testing.T) {
	t.Parallel()
	parsed, err := ReadTree(tree())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		s    Selection
		want string // names, sorted
		err  string
	}{
		"dependency and soft dependency": {
			s: Selection{Want: []string{"drivers/net/ethernet/"}}, want: "libphy r8169 realtek",
		},
		"every implementation behind an alias": {
			s: Selection{Want: []string{"fs/ext4/ext4"}}, want: "crc32c_generic crc32c_intel ext4 libcrc32c",
		},
		"soft dependency that does not exist": {s: Selection{Want: []string{"drivers/scsi/sd_*"}}, want: "sd_mod"},
		"soft dependency after":               {s: Selection{Want: []string{"drivers/net/wireless/"}}, want: "drm iwl sd_mod"},
		"left out":                            {s: Selection{Want: []string{"drivers/scsi/"}, Skip: []string{"drivers/scsi/scsi_debug"}}, want: "sd_mod"},
		"left out but needed": {
			s: Selection{Want: []string{"drivers/scsi/"}, Skip: []string{"drivers/scsi/sd_mod"}}, want: "scsi_debug sd_mod",
		},
		"server": {
			s:    ServerModules("amd64"),
			want: "crc32c_generic crc32c_intel ext4 libcrc32c libphy r8169 realtek sd_mod",
		},
		"server of another architecture": {
			s:    Selection{Want: ServerModules("arm64").Want, Skip: []string{"fs/ext4/"}},
			want: "crc32c_generic libphy r8169 realtek scsi_debug sd_mod",
		},
		"nothing":      {s: Selection{Want: []string{"sound/"}}, err: "none of the kernel's 11 modules"},
		"bad pattern":  {s: Selection{Want: []string{"drivers/[x"}}, err: `"drivers/[x"`},
		"not a folder": {s: Selection{Want: []string{"drivers/scsi"}}, err: "none of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keep, err := tc.s.Select(parsed)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for file := range keep {
				names = append(names, ModuleName(file))
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestModuleEntries(t *testing.T) {
	t.Parallel()
	list, err := ModuleEntries(tree(), "6.1", Selection{Want: []string{"drivers/scsi/sd_mod", "fs/ext4/"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range list {
		r, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || int64(len(data)) != e.Size {
			t.Errorf("%s: %d bytes, error %v, want %d", e.Name, len(data), err, e.Size)
		}
		got[strings.TrimPrefix(e.Name, "lib/modules/6.1/")] = string(data)
	}
	want := map[string]string{
		"modules.dep": `kernel/fs/ext4/ext4.ko: kernel/lib/libcrc32c.ko
kernel/lib/libcrc32c.ko:
kernel/crypto/crc32c_generic.ko:
kernel/arch/x86/crypto/crc32c-intel.ko:
kernel/drivers/scsi/sd_mod.ko:
`,
		"modules.alias": `alias crc32c crc32c_generic
alias crypto-crc32c crc32c_generic
alias crypto-crc32c crc32c_intel
alias scsi:t-0x00* sd_mod
`,
		"modules.softdep": `softdep libcrc32c pre: crypto-crc32c
softdep sd_mod pre: nowhere
`,
		"modules.order":           "kernel/fs/ext4/ext4.ko\nkernel/drivers/scsi/sd_mod.ko\n",
		"modules.builtin":         "kernel/net/packet/af_packet.ko\nkernel/drivers/input/input-core.ko\n",
		"modules.builtin.modinfo": "input_core.license=GPL\x00",
	}
	for _, file := range []string{
		"kernel/fs/ext4/ext4.ko", "kernel/lib/libcrc32c.ko", "kernel/crypto/crc32c_generic.ko",
		"kernel/arch/x86/crypto/crc32c-intel.ko", "kernel/drivers/scsi/sd_mod.ko",
	} {
		want[file] = "ELF " + file
	}
	if !maps.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// What was filtered and written is read back as the same: a second pass that
// keeps everything changes nothing.
func TestFilterRoundTrip(t *testing.T) {
	t.Parallel()
	first, err := ReadTree(tree())
	if err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{}
	for _, m := range first.Modules {
		keep[m.Path] = true
	}
	files := first.Filter(keep).Files()
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: data}
	}
	second, err := ReadTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range second.Filter(keep).Files() {
		if string(data) != string(files[name]) {
			t.Errorf("%s changed:\n%s\nbefore\n%s", name, data, files[name])
		}
	}
	if !second.Builtin["input_core"] {
		t.Error("input-core.ko is not known as the built-in module input_core")
	}
}

func TestReadTreeRefuses(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"modules.dep":     "kernel/a.ko kernel/b.ko\n",
		"modules.alias":   "alias a b c\n",
		"modules.softdep": "soft a\n",
		"modules.order":   "a b\n",
		"modules.builtin": "a b\n",
	} {
		fsys := tree()
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
		if _, err := ReadTree(fsys); err == nil || !strings.Contains(err.Error(), name+":1:") {
			t.Errorf("%s: error %v, want one that names file and line", name, err)
		}
		delete(fsys, name)
		if _, err := ReadTree(fsys); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s absent: error %v", name, err)
		}
	}
	fsys := tree()
	fsys["modules.dep"] = &fstest.MapFile{Data: []byte("kernel/fs/ext4/ext4.ko: kernel/lost.ko\n")}
	if _, err := ModuleEntries(fsys, "6.1", Selection{Want: []string{"fs/"}}); err == nil || !strings.Contains(err.Error(), "kernel/lost.ko") {
		t.Errorf("a dependency without a line: error %v", err)
	}
	fsys = tree()
	delete(fsys, "kernel/fs/ext4/ext4.ko")
	if _, err := ModuleEntries(fsys, "6.1", Selection{Want: []string{"fs/"}}); err == nil {
		t.Error("a module without a file was accepted")
	}
}

func TestWorkerEntries(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range WorkerEntries([]byte("ELF")) {
		got = append(got, e.Mode.String()+" "+e.Name)
	}
	slices.Sort(got)
	want := []string{
		"-rwxr-xr-x init", "Dcrw------- dev/console", "drwxr-xr-x dev", "drwxr-xr-x etc", "drwxr-xr-x mnt",
		"drwxr-xr-x proc", "drwxr-xr-x run", "drwxr-xr-x sys", "drwxr-xr-x tmp",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
