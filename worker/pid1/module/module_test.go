package module

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

const depText = `kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko
kernel/net/core/failover.ko:
kernel/drivers/virtio/virtio.ko:
kernel/drivers/virtio/virtio_ring.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/ata/ahci.ko.zst:
kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko
kernel/lib/crc16.ko:
kernel/crypto/crc32c-intel.ko:
kernel/crypto/crc32c_generic.ko:
`

const aliasText = `# Aliases extracted from modules themselves.
alias pci:v00001AF4d*sv*sd*bc*sc*i* virtio_pci
alias virtio:d00000001v* virtio_net
alias pci:v*d*sv*sd*bc01sc06i01* ahci
alias fs-ext4 ext4
alias crypto-crc32c crc32c_intel
alias crypto-crc32c crc32c_generic
alias acpi*:QEMU0002:* crc16
alias broken
`

func testIndex(t *testing.T) *Index {
	t.Helper()
	x, err := ReadIndex(fstest.MapFS{
		"modules.dep":     {Data: []byte(depText)},
		"modules.alias":   {Data: []byte(aliasText)},
		"modules.softdep": {Data: []byte("# x\nsoftdep ext4 pre: crypto-crc32c post: ahci\nsoftdep crc16 pre: ext4\n")},
		"modules.builtin": {Data: []byte("kernel/drivers/tty/serial/8250/8250.ko\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestIndexMatch(t *testing.T) {
	t.Parallel()
	x := testIndex(t)
	for alias, want := range map[string]string{
		"pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00": "virtio_pci",
		"virtio:d00000001v00001AF4":                             "virtio_net",
		"pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01": "ahci",
		"acpi:QEMU0002:":           "crc16",
		"fs-ext4":                  "ext4",
		"crypto-crc32c":            "crc32c_intel crc32c_generic",
		"pci:v00008086d0000":       "",
		"":                         "",
		"usb:v0BDAp8152d3000dc00d": "",
	} {
		if got := strings.Join(x.Match(alias), " "); got != want {
			t.Errorf("Match(%q) = %q, want %q", alias, got, want)
		}
	}
	for name, want := range map[string]string{"crc32c-intel": "crc32c_intel", "8250": "", "fs-ext4": "ext4", "ahci": "ahci"} {
		if got := strings.Join(x.Resolve(name), " "); got != want {
			t.Errorf("Resolve(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestIndexNeedsModulesDep(t *testing.T) {
	t.Parallel()
	if _, err := ReadIndex(fstest.MapFS{}); !isNotExist(err) {
		t.Errorf("error is %v", err)
	}
}

// recorder is a kernel that notes what is inserted.
type recorder struct {
	mu    sync.Mutex
	files []string
	fail  map[string]error
}

func (r *recorder) insert(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = append(r.files, filepath.Base(path))
	return r.fail[filepath.Base(path)]
}

func newTestLoader(t *testing.T) (*Loader, *recorder) {
	t.Helper()
	r := &recorder{fail: map[string]error{}}
	l := NewLoader(testIndex(t), "/m")
	l.insert = r.insert
	return l, r
}

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	l, r := newTestLoader(t)
	if err := l.Load("virtio_net"); err != nil {
		t.Fatal(err)
	}
	want := []string{"virtio.ko", "virtio_ring.ko", "failover.ko", "net_failover.ko", "virtio_net.ko"}
	if !slices.Equal(r.files, want) {
		t.Errorf("loaded %v, want %v", r.files, want)
	}
	r.files = nil
	if err := l.Load("virtio-pci"); err != nil || !slices.Equal(r.files, []string{"virtio_pci.ko"}) {
		t.Errorf("what is loaded was loaded again: %v, %v", r.files, err)
	}
}

func TestSoftDependenciesComeFirstAndMayFail(t *testing.T) {
	t.Parallel()
	l, r := newTestLoader(t)
	r.fail["crc32c-intel.ko"] = unix.ENOSYS
	if err := l.Load("fs-ext4"); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{"crc32c_generic.ko", "ext4.ko"}, {"crc16.ko", "ext4.ko"}} {
		if slices.Index(r.files, pair[0]) > slices.Index(r.files, pair[1]) || !slices.Contains(r.files, pair[0]) {
			t.Errorf("%s is not before %s in %v", pair[0], pair[1], r.files)
		}
	}
	if slices.Contains(r.files, "ahci.ko.zst") {
		t.Error("a post dependency was loaded")
	}
}

func TestLoadErrorsNameTheModule(t *testing.T) {
	t.Parallel()
	l, r := newTestLoader(t)
	r.fail["virtio_ring.ko"] = unix.EINVAL
	err := l.Load("virtio_pci")
	if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "module virtio_ring: invalid argument") {
		t.Errorf("error is %v", err)
	}
	if err := l.Load("no-such"); err != nil {
		t.Errorf("a module that is not known gave %v", err)
	}
}

func TestColdplugAndSettle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, alias := range map[string]string{
		"pci0/a": "pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01",
		"pci0/b": "pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00",
		"x/c":    "acpi:QEMU0002:",
	} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "modalias"), []byte(alias+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l, r := newTestLoader(t)
		slow := make(chan struct{})
		l.insert = func(path string) error {
			if strings.Contains(path, "ahci") {
				<-slow
				return unix.ENOENT
			}
			return r.insert(path)
		}
		var failed []error
		p := NewPlugger(l, func(err error) { failed = append(failed, err) })
		if n := p.Coldplug(dir); n != 3 {
			t.Errorf("%d kinds of device", n)
		}
		short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if p.Settle(short, time.Second) {
			t.Error("settled while a driver was being loaded")
		}
		p.Plug("virtio:d00000001v00001AF4")
		p.Plug("virtio:d00000001v00001AF4")
		close(slow)
		before := time.Now()
		if !p.Settle(t.Context(), time.Second) || time.Since(before) != time.Second {
			t.Errorf("settled after %v", time.Since(before))
		}
		if !slices.Contains(r.files, "virtio_net.ko") || len(failed) != 1 {
			t.Errorf("loaded %v, failed %v", r.files, failed)
		}
	})
}

// Nobody waits for the driver of a BMC, which may be dead.
func TestAside(t *testing.T) {
	t.Parallel()
	for alias, want := range map[string]bool{
		"acpi:IPI0001:": true, "platform:dmi-ipmi-si": true, "platform:dmi-ipmi-ssif": true, "pci:v0000103Cd00003302sv0000103Csd00003381bc0Csc07i01": true,
		"acpi:QEMU0002:": false, "platform:i8042": false, "pci:v00008086d00002922sv00001AF4sd00001100bc0Csc03i30": false, "IPI0001": false,
	} {
		if got := aside(alias); got != want {
			t.Errorf("%s: %v", alias, got)
		}
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newTestLoader(t)
		p := NewPlugger(l, nil)
		p.Hold()
		p.Plug("pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01")
		p.Plug("pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00")
		synctest.Wait()
		if slices.Contains(r.files, "ahci.ko.zst") || !slices.Contains(r.files, "virtio_pci.ko") {
			t.Errorf("while held, %v was loaded", r.files)
		}
		p.Release()
		synctest.Wait()
		if !slices.Contains(r.files, "ahci.ko.zst") {
			t.Errorf("after the release, %v was loaded", r.files)
		}
	})
}

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := newTestLoader(t)
		p := NewPlugger(l, nil)
		var mu sync.Mutex
		there := false
		go func() {
			time.Sleep(time.Minute) // in the bubble's own time
			mu.Lock()
			there = true
			mu.Unlock()
			p.Touch()
		}()
		cond := func() bool { mu.Lock(); defer mu.Unlock(); return there }
		if !p.Until(t.Context(), cond) {
			t.Error("the disk was not noticed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if p.Until(ctx, func() bool { return false }) {
			t.Error("Until ended without its condition")
		}
	})
}

func TestRank(t *testing.T) {
	t.Parallel()
	for alias, want := range map[string]int{
		"virtio:d00000001v00001AF4":                             0,
		"pci:v00008086d00001533sv00008086sd00001533bc02sc00i00": 0,
		"pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01": 1,
		"scsi:t-0x00":                1,
		"cpu:type:x86,ven0000fam006": 2,
	} {
		if got := rank(alias); got != want {
			t.Errorf("rank(%q) = %d, want %d", alias, got, want)
		}
	}
}

func TestParseUevent(t *testing.T) {
	t.Parallel()
	u, ok := ParseUevent([]byte("add@/devices/pci0/virtio1\x00ACTION=add\x00MODALIAS=virtio:d00000001v00001AF4\x00odd\x00"))
	if !ok || u.Action != "add" || u.Path != "/devices/pci0/virtio1" || u.Vars["MODALIAS"] != "virtio:d00000001v00001AF4" {
		t.Errorf("%+v, %v", u, ok)
	}
	for _, bad := range []string{"", "libudev\x00\xfe\xed\xca\xfe", "add", "@/devices", "add@x"} {
		if _, ok := ParseUevent([]byte(bad)); ok {
			t.Errorf("%q is a uevent", bad)
		}
	}
}

func TestHelper(t *testing.T) {
	t.Parallel()
	if ok, _ := Helper([]string{"/init"}, t.TempDir()); ok {
		t.Error("init is not modprobe")
	}
	if ok, err := Helper([]string{"/sbin/modprobe"}, t.TempDir()); !ok || err == nil {
		t.Errorf("without a name: %v, %v", ok, err)
	}
	if ok, err := Helper([]string{"/sbin/modprobe", "-q", "--", "fs-ext4"}, t.TempDir()); !ok || !isNotExist(err) {
		t.Errorf("without modules: %v, %v", ok, err)
	}
}
