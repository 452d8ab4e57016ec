package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// archiveOf is a small Debian archive of one architecture: real packages, made by
// dpkg-deb.
type archiveOf struct {
	tools
	debs      string
	packages  map[string]bootimage.Stanza
	downloads atomic.Int32
}

func newArchive(t *testing.T) *archiveOf { return archiveFor(t, arches()[0]) }

func archiveFor(t *testing.T, of arch) *archiveOf {
	t.Helper()
	needTools(t, "dpkg-deb", "zstd")
	kernelVersion := "6.1.0-1-" + of.name
	a := &archiveOf{debs: t.TempDir(), packages: map[string]bootimage.Stanza{
		of.meta(): {"package": of.meta(), "depends": "linux-image-" + kernelVersion + " (= 1)"},
	}}
	modules := "lib/modules/" + kernelVersion + "/"
	a.add(t, "linux-image-"+kernelVersion, map[string]string{
		"boot/vmlinuz-" + kernelVersion:                     "kernel",
		modules + "kernel/drivers/net/virtio_net.ko":        "ELF",
		modules + "kernel/sound/noise.ko":                   "ELF",
		modules + "modules.order":                           "kernel/drivers/net/virtio_net.ko\n",
		modules + "modules.builtin":                         "kernel/net/packet/af_packet.ko\n",
		modules + "modules.builtin.modinfo":                 "",
		"usr/share/doc/linux-image-" + kernelVersion + "/x": "",
	})
	for _, s := range of.sources {
		if s.pkg != "" && a.packages[s.pkg] == nil {
			files := map[string]string{}
			for _, f := range of.sources {
				if f.pkg == s.pkg {
					files[f.path] = "MZ " + f.file
				}
			}
			a.add(t, s.pkg, files)
		}
	}
	a.tools = tools{
		show: func(_ context.Context, names ...string) (list []bootimage.Stanza, err error) {
			for _, name := range names {
				if p, ok := a.packages[name]; ok {
					list = append(list, p)
				}
			}
			return list, nil
		},
		download: func(_ context.Context, dir, pkg, _ string) error {
			a.downloads.Add(1)
			return copyFile(filepath.Join(dir, pkg+".deb"), filepath.Join(a.debs, pkg+".deb"))
		},
		depmod: func(_ context.Context, root, kernel string) error {
			dir := filepath.Join(root, "lib/modules", kernel)
			for name, text := range map[string]string{
				"modules.dep":     "kernel/drivers/net/virtio_net.ko:\nkernel/sound/noise.ko:\n",
				"modules.alias":   "alias virtio:d00000001v* virtio_net\n",
				"modules.softdep": "",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		buildWorker: func(context.Context, string, string) error { return errors.New("no worker to build") },
	}
	return a
}

// all are the tools of an archive, for whatever architecture.
func (a *archiveOf) all(arch) tools { return a.tools }

// add builds a package with those files and a copyright file.
func (a *archiveOf) add(t *testing.T, name string, files map[string]string) {
	t.Helper()
	files["usr/share/doc/"+name+"/copyright"] = "Files: *\nLicense: GPL-2\n"
	files["DEBIAN/control"] = "Package: " + name + "\nVersion: 1\nArchitecture: amd64\nMaintainer: a <a@example.org>\nDescription: a\n"
	root := t.TempDir()
	for file, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(a.debs, name+".deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-b", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	sum, err := checksum(deb)
	if err != nil {
		t.Fatal(err)
	}
	a.packages[name] = bootimage.Stanza{"package": name, "version": "1", "sha256": sum}
}

func testOptions(t *testing.T) options {
	t.Helper()
	return options{arches: arches()[:1], out: filepath.Join(t.TempDir(), "embedded"), cache: t.TempDir(), worker: goProgram(t, "amd64"), level: 3}
}

// goProgram returns a static program: this test's Go toolchain makes one.
func goProgram(t *testing.T, goarch string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "init"), source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+goarch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "init")
}

func TestRun(t *testing.T) {
	t.Parallel()
	a, o := newArchive(t), testOptions(t)
	var log strings.Builder
	if err := run(t.Context(), o, a.all, &log); err != nil {
		t.Fatal(err)
	}
	if got := a.downloads.Load(); got != 4 {
		t.Errorf("%d downloads, want 4", got)
	}
	if !strings.Contains(log.String(), "compressing 1 kernel modules") {
		t.Errorf("one of two modules is to be chosen:\n%s", &log)
	}
	var origins []origin
	text, err := os.ReadFile(filepath.Join(o.out, "provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &origins); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range origins {
		sum, err := checksum(filepath.Join(o.out, p.File))
		if err != nil || sum != p.SHA256 {
			t.Errorf("%s: sha256 %s, %v, provenance says %s", p.File, sum, err, p.SHA256)
		}
		names = append(names, fmt.Sprint(p.File, " ", p.Package, " ", p.Version, " ", p.Licence, " ", p.Source))
	}
	want := []string{
		"undionly.kpxe ipxe 1 GPL-2 debian", "snponly.efi ipxe 1 GPL-2 debian", "ipxe.efi ipxe 1 GPL-2 debian",
		"shimx64.efi shim-signed 1 GPL-2 debian", "grubx64.efi grub-efi-amd64-signed 1 GPL-3+ debian",
		"vmlinuz-amd64 linux-image-6.1.0-1-amd64 1 GPL-2 debian",
		"initramfs-amd64 linux-image-6.1.0-1-amd64 1 GPL-2 and Apache-2.0 built",
	}
	if !slices.Equal(names, want) {
		t.Errorf("provenance\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if left, err := filepath.Glob(filepath.Join(o.cache, ".tmp*")); err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %q", left)
	}
}

// A folder that never had boot files may be somebody's own: nothing of it is removed.
func TestRunElsewhere(t *testing.T) {
	t.Parallel()
	a, o := newArchive(t), testOptions(t)
	mine := filepath.Join(o.out, "letter.txt")
	if err := os.Mkdir(o.out, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o, a.all, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

// A second run changes nothing and needs nothing, in whatever order apt lists
// the packages; a new kernel is noticed.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	a, o := newArchive(t), testOptions(t)
	if err := run(t.Context(), o, a.all, io.Discard); err != nil {
		t.Fatal(err)
	}
	a.downloads.Store(0)
	for range 8 {
		var log strings.Builder
		if err := run(t.Context(), o, a.all, &log); err != nil {
			t.Fatal(err)
		}
		if got := a.downloads.Load(); got != 0 || strings.Contains(log.String(), "compressing") || strings.Contains(log.String(), "wrote") {
			t.Fatalf("%d downloads, log:\n%s", got, &log)
		}
	}
	a.add(t, "ipxe", map[string]string{
		"usr/lib/ipxe/undionly.kpxe": "new", "usr/lib/ipxe/snponly.efi": "MZ snponly.efi", "boot/ipxe.efi": "MZ ipxe.efi",
	})
	var log strings.Builder
	if err := run(t.Context(), o, a.all, &log); err != nil {
		t.Fatal(err)
	}
	if got := a.downloads.Load(); got != 1 {
		t.Errorf("%d downloads for one new package", got)
	}
	if got := strings.Count(log.String(), "wrote "); got != 2 {
		t.Errorf("%d files written, want undionly.kpxe and provenance.json:\n%s", got, &log)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, a *archiveOf, o *options)
		want  string
	}{
		"damaged download": {func(t *testing.T, a *archiveOf, _ *options) {
			a.packages["ipxe"]["sha256"] = strings.Repeat("0", 64)
		}, "apt's list says 000"},
		"no lists": {func(t *testing.T, a *archiveOf, _ *options) { clear(a.packages) }, "apt-get update"},
		"package gone": {func(t *testing.T, a *archiveOf, _ *options) {
			delete(a.packages, "shim-signed")
		}, "no download of package shim-signed"},
		"file gone from the package": {func(t *testing.T, a *archiveOf, _ *options) {
			a.add(t, "shim-signed", map[string]string{})
		}, "package shim-signed: open"},
		"depmod fails": {func(t *testing.T, a *archiveOf, _ *options) {
			a.tools.depmod = func(context.Context, string, string) error { return errors.New("depmod said no") }
		}, "depmod said no"},
		"no worker":      {func(t *testing.T, _ *archiveOf, o *options) { o.worker = "" }, "no worker to build"},
		"not a program":  {func(t *testing.T, a *archiveOf, o *options) { o.worker = filepath.Join(a.debs, "ipxe.deb") }, "bad magic"},
		"dynamic worker": {func(t *testing.T, _ *archiveOf, o *options) { o.worker = "/bin/ls" }, "dynamically linked"},
		"worker for another machine": {
			func(t *testing.T, _ *archiveOf, o *options) { o.worker = goProgram(t, "arm64") }, "EM_AARCH64, not amd64 (build it with GOARCH=amd64)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, o := newArchive(t), testOptions(t)
			tc.spoil(t, a, &o)
			err := run(t.Context(), o, a.all, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if files, _ := filepath.Glob(filepath.Join(o.out, "*")); len(files) > 0 {
				t.Errorf("wrote %q", files)
			}
			// What failed is not taken for done.
			if err := run(t.Context(), o, a.all, io.Discard); err == nil {
				t.Error("the second run did not fail")
			}
		})
	}
}

// Files for arm64 come from its own packages, and the kernel is kept packed. A build that leaves them out takes them away, and
// what no build makes any more.
func TestRunBoth(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.arches, o.worker = arches(), ""
	of := map[string]*archiveOf{}
	for _, a := range o.arches {
		of[a.name] = archiveFor(t, a)
		program := goProgram(t, a.name)
		of[a.name].buildWorker = func(_ context.Context, file, _ string) error { return copyFile(file, program) }
	}
	toolsFor := func(a arch) tools { return of[a.name].tools }
	var log strings.Builder
	if err := run(t.Context(), o, toolsFor, &log); err != nil {
		t.Fatal(err)
	}
	var origins []origin
	read := func() (arm int) {
		origins = nil
		text, err := os.ReadFile(filepath.Join(o.out, "provenance.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &origins); err != nil {
			t.Fatal(err)
		}
		for _, p := range origins {
			if strings.Contains(p.File, "arm64") || strings.Contains(p.File, "aa64") {
				arm++
			}
			sum, err := checksum(filepath.Join(o.out, p.stored()))
			if err != nil || (sum == p.SHA256) == p.Packed {
				t.Errorf("%s: sha256 of the file is %s, %v; of the boot file it is %s", p.File, sum, err, p.SHA256)
			}
		}
		return arm
	}
	if n := read(); n != 4 || len(origins) != 11 {
		t.Errorf("%d of %d files are for arm64, want 4 of 11:\n%v", n, len(origins), origins)
	}
	kernel, err := command(t.Context(), "", "zstd", "-dc", filepath.Join(o.out, "vmlinuz-arm64.zst"))
	if err != nil || kernel != "kernel" {
		t.Errorf("the packed kernel is %q, %v", kernel, err)
	}
	o.arches = o.arches[:1]
	// what an earlier version made, and what is in the repository
	for _, name := range []string{"grubaa64-http.efi", "README.md", ".gitignore"} {
		if err := os.WriteFile(filepath.Join(o.out, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), o, toolsFor, &log); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", ".gitignore"} {
		if text, err := os.ReadFile(filepath.Join(o.out, name)); string(text) != name {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(o.out, "*a*64*"))
	if n := read(); n != 0 || err != nil || slices.ContainsFunc(left, func(f string) bool { return strings.Contains(f, "arm64") || strings.Contains(f, "aa64") }) {
		t.Errorf("%d files for arm64 in provenance.json; there are %q", n, left)
	}
}

// Without a network there is no list of the other architecture's packages, and an old
// one will do.
func TestLists(t *testing.T) {
	needTools(t, "apt-get")
	// apt reads this in place of the machine's sources: nothing answers there.
	config := filepath.Join(t.TempDir(), "apt.conf")
	sources := filepath.Join(t.TempDir(), "sources.list")
	for file, text := range map[string]string{
		config:  fmt.Sprintf("Dir::Etc::sourcelist %q; Dir::Etc::sourceparts \"/dev/null\"; Acquire::Retries \"0\";\n", sources),
		sources: "deb [trusted=yes] http://127.0.0.1:1/debian bookworm main\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("APT_CONFIG", config)
	l := lists{arch: "arm64", dir: t.TempDir()}
	if runtime.GOARCH == l.arch {
		l.arch = "amd64"
	}
	_, err := l.options(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the first build needs the network; `-arch "+runtime.GOARCH+"` leaves "+l.arch+" out") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(l.stamp(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * listsAge)
	if err := os.Chtimes(l.stamp(), long, long); err != nil {
		t.Fatal(err)
	}
	if options, err := l.options(t.Context()); err != nil || !slices.Contains(options, "-oAPT::Architecture="+l.arch) {
		t.Errorf("with old lists: %q, %v", options, err)
	}
	if options, err := (lists{arch: runtime.GOARCH}).options(t.Context()); err != nil || len(options) > 0 {
		t.Errorf("the machine's own packages: %q, %v", options, err)
	}
}

// Too large a pair of kernel and initramfs is refused.
func TestAssembleLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{modulesPart, "worker"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range arches() {
		b := base{arch: a, dir: dir, origins: []origin{{File: a.kernelFile(), Size: a.limit - 8}}}
		if _, err := assemble(b, filepath.Join(dir, "worker"), io.Discard); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		b.origins[0].Size = a.limit
		if _, err := assemble(b, filepath.Join(dir, "worker"), io.Discard); err == nil || !strings.Contains(err.Error(), "at most "+mb(a.limit)) {
			t.Errorf("%s: error %v", a.name, err)
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{"abcd": "abcdX", "abcde": "abcde\x00\x00\x00X", "": "X"} {
		if got := string(join([]byte(first), []byte("X"))); got != want {
			t.Errorf("%q: got %q, want %q", first, got, want)
		}
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d"} {
		if _, err := cached(dir, name, 2, func(tmp string) error { return os.WriteFile(tmp, nil, 0o600) }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cached(dir, "e", 2, func(string) error { return errors.New("no") }); err == nil {
		t.Error("the error of produce is lost")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d entries stay, %v, want 2", len(entries), err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": "/home/a"}
	for _, tc := range []struct{ cache, want string }{{"", "/home/a/.cache/rackstrap"}, {"/big", "/big"}} {
		env["RACKSTRAP_CACHE"] = tc.cache
		o, err := parse(nil, func(name string) string { return env[name] })
		if err != nil || o.cache != tc.want || o.out != "ipxe/embedded" || len(o.arches) != 2 {
			t.Errorf("got %+v, %v, want cache %s", o, err, tc.want)
		}
	}
	for _, args := range [][]string{{"x"}, {"-arch", "riscv64"}, {"-arch", "amd64,amd64"}, {"-worker", "program"}} {
		if _, err := parse(args, func(string) string { return "" }); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

// needTools skips the test without the programs, except where skipping counts
// as failure.
func needTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := lookTool(name); err != nil {
			needed(t, err.Error())
		}
	}
}

func needed(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
