package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// TestBoot boots Debian's kernel with the initramfs that run makes, and with
// two extra parts behind it, in half a gigabyte of memory. /init is
// testdata/init, which loads drivers and looks for the parts.
func TestBoot(t *testing.T) {
	needTools(t, "qemu-system-x86_64", "apt-get", "dpkg-deb", "depmod", "zstd")
	o, err := parse([]string{"-arch", "amd64", "-level", "3", "-out", filepath.Join(t.TempDir(), "embedded")}, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	o.worker = filepath.Join(t.TempDir(), "init")
	if _, err := command(ctx, "", "env", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64",
		"go", "build", "-o", o.worker, "../../testdata/init"); err != nil {
		t.Fatal(err)
	}
	a := o.arches[0]
	sys := system(a, o.cache)
	download, notCached := sys.download, errors.New("packages are not in the cache (run `make assets`)")
	sys.download = func(ctx context.Context, dir, pkg, version string) error {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			return download(ctx, dir, pkg, version)
		}
		return notCached
	}
	err = run(ctx, o, func(arch) tools { return sys }, t.Output())
	if errors.Is(err, notCached) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	initramfs, err := os.ReadFile(filepath.Join(o.out, a.initramfsFile()))
	if err != nil {
		t.Fatal(err)
	}
	initramfs = join(initramfs, part(t, "extra-gzip", true))
	initramfs = join(initramfs, part(t, "extra-plain", false))
	file := filepath.Join(t.TempDir(), "initramfs")
	if err := os.WriteFile(file, initramfs, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-m", "512", "-nographic", "-no-reboot",
		"-nic", "user,model=virtio-net-pci", "-kernel", filepath.Join(o.out, a.kernelFile()), "-initrd", file,
		"-append", "console=ttyS0 panic=-1")
	console, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("qemu: %v", err)
	}
	for _, want := range []string{
		"init: loaded virtio_net", "init: loaded nvme", "init: loaded ext4", "init: loaded vfat",
		"init: links [/sys/class/net/eth0]", "init: extra [/extra-gzip /extra-plain]", "init: done",
	} {
		if !strings.Contains(string(console), want) {
			t.Errorf("the console does not say %q", want)
		}
	}
	if bad := regexp.MustCompile(`(?m)^.*(Initramfs unpacking failed|FAILED|taint|Call Trace).*$`).FindAll(console, -1); bad != nil {
		t.Errorf("the console says %q", bad)
	}
	for _, line := range regexp.MustCompile(`init: (uptime|memory).*`).FindAllString(string(console), -1) {
		t.Log(strings.TrimSpace(line))
	}
	if t.Failed() {
		t.Logf("%s", console)
	}
}

// part returns an archive of one file whose length is no multiple of four.
func part(t *testing.T, name string, zip bool) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser = nopCloser{&buf}
	if zip {
		w = gzip.NewWriter(&buf)
	}
	if err := bootimage.WriteCPIO(w, []bootimage.Entry{bootimage.Bytes(name, 0o644, []byte("x"))}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
