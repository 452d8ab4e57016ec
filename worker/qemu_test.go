package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// need skips the test with the reason, or fails it where nothing may be skipped.
func need(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// assets are the kernel and the initramfs that `make assets` made.
func assets(t testing.TB) (kernel, initramfs string) {
	t.Helper()
	kernel, initramfs = asset(t, "vmlinuz-amd64"), asset(t, "initramfs-amd64")
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		need(t, "%v (apt-get install qemu-system-x86)", err)
	}
	return kernel, initramfs
}

// asset is the path of a file that `make assets` made.
func asset(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("RACKSTRAP_TEST_ASSETS")
	if dir == "" {
		dir = filepath.Join("..", "ipxe", "embedded")
	}
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); err != nil {
		need(t, "%v (run `make assets`)", err)
	}
	return file
}

// withInit appends the program as /init to the real initramfs: the kernel unpacks
// archives one after the other, and a later file replaces an earlier one.
func withInit(t testing.TB, base, pkg string) string { return withInitFor(t, "amd64", base, pkg) }

func withInitFor(t testing.TB, goarch, base, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	prog := filepath.Join(dir, "init")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w -X main.version=test", "-o", prog, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+goarch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(prog)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %.1f MB", pkg, float64(len(code))/1e6)
	archive, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	buf := bytes.NewBuffer(archive)
	// An archive starts at a multiple of four bytes.
	buf.Write(make([]byte, (4-buf.Len()%4)%4))
	if err := bootimage.WriteCPIO(buf, []bootimage.Entry{bootimage.Bytes("init", 0o755, code)}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "initramfs")
	if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// guest is a virtual machine and what it printed on its serial line.
type guest struct {
	done chan error

	mu    sync.Mutex
	lines []string
	seen  chan struct{}
}

const guestMAC = "52:54:00:12:34:56"

// boot starts a machine with one network card and two disks.
func boot(t testing.TB, kernel, initramfs, cmdline string, more ...string) *guest {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 64<<20); err != nil {
		t.Fatal(err)
	}
	return bootBare(t, kernel, initramfs, cmdline, append([]string{
		"-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n,romfile=,mac=" + guestMAC,
		"-drive", "if=none,id=d,format=raw,file=" + disk, "-device", "virtio-blk-pci,drive=d,serial=DISK1",
		"-drive", "if=none,id=s,format=raw,file.driver=null-co,file.size=32M", "-device", "ide-hd,drive=s,serial=SATA1",
	}, more...)...)
}

// bootBare starts a machine with half a gigabyte of memory.
func bootBare(t testing.TB, kernel, initramfs, cmdline string, more ...string) *guest {
	t.Helper()
	return start(t, "qemu-system-x86_64", append([]string{
		"-machine", "q35", "-cpu", "max", "-m", "512", "-kernel", kernel, "-initrd", initramfs, "-append", cmdline,
	}, more...)...)
}

// start starts a machine whose console is its serial line.
func start(t testing.TB, qemu string, more ...string) *guest {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	args := append([]string{"-accel", "tcg", "-smp", "2", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"}, more...)
	cmd := exec.CommandContext(ctx, qemu, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := &guest{done: make(chan error, 1), seen: make(chan struct{}, 1)}
	go func() {
		g.read(out)
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		g.done <- err
		close(g.done)
	}()
	t.Cleanup(func() {
		cancel()
		for range g.done {
		}
		if t.Failed() {
			t.Logf("the serial line:\n%s", g.text())
		}
	})
	return g
}

func (g *guest) read(r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		g.mu.Lock()
		g.lines = append(g.lines, strings.TrimRight(sc.Text(), "\r"))
		g.mu.Unlock()
		select {
		case g.seen <- struct{}{}:
		default:
		}
	}
}

func (g *guest) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

const guestLimit = 5 * time.Minute

// prints waits for a text on the serial line.
func (g *guest) prints(t testing.TB, text string) {
	t.Helper()
	limit := time.After(guestLimit)
	for !strings.Contains(g.text(), text) {
		select {
		case <-g.seen:
		case <-limit:
			t.Fatalf("the machine did not print %q", text)
		}
	}
}

// leaves waits for the end of the machine (its restart ends QEMU).
func (g *guest) leaves(t testing.TB) {
	t.Helper()
	select {
	case err := <-g.done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(guestLimit):
		t.Fatal("the machine goes on")
	}
}

// TestMachine boots the real kernel with the real modules and the worker as its
// init, against a real server over TLS: hello, facts, a wipe, reboot.
func TestMachine(t *testing.T) {
	kernel, base := assets(t)
	initramfs := withInit(t, base, "../cmd/rackstrap-worker")
	ca := newAuthority(t, true)
	a := startAppliance(t, chain(ca.leaf(t), ca))
	g := boot(t, kernel, initramfs, guestLine(a, ca.pin()))

	k := waitHello(t, a, g)
	t.Logf("kernel start to first RPC: %d ms", k.hello.GetKernelMs())
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{Protocol: 1, Scope: "work", Machine: "m1", Boot: "B", UnixMs: time.Now().UnixMilli()}}})
	var f hardware.Facts
	m := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
	if err := json.Unmarshal(m.GetFacts().GetJson(), &f); err != nil {
		t.Fatal(err)
	}
	checkFacts(t, f)
	k.ack(t, m.GetSeq())

	wipe := &workerpb.Assign{Assignment: &workerpb.Assignment{Workflow: "W"}, Name: "wipe", Kind: "disk.wipe", Options: []byte(`{"disk":"largest"}`), Actions: 2}
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Assign{Assign: wipe}})
	r := k.report(t)
	if r.GetReport().GetOutcome() != workerpb.Outcome_OUTCOME_SUCCEEDED || r.GetReport().GetDisk() != "/dev/vda" {
		t.Errorf("the wipe ended with %v", r)
	}
	k.ack(t, r.GetSeq())
	reboot := &workerpb.Assign{Assignment: &workerpb.Assignment{Workflow: "W", Action: 1}, Name: "restart", Kind: "reboot", Actions: 2}
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Assign{Assign: reboot}})
	r = k.report(t)
	k.ack(t, r.GetSeq())
	g.leaves(t)
	if out := g.text(); strings.Contains(out, testToken) || !strings.Contains(out, "this machine is m1") {
		t.Errorf("the console shows the token, or not the machine:\n%s", out)
	}
	t.Logf("the serial line:\n%s", g.text())
}

// guestLine is the kernel command line that a boot script gives.
func guestLine(a *appliance, pin [32]byte) string {
	return "console=tty0 console=ttyS0,115200 " + guestWords(a, pin)
}

func guestWords(a *appliance, pin [32]byte) string {
	return fmt.Sprintf("quiet rackstrap.server=10.0.2.2:%d rackstrap.http=http://10.0.2.2:7080 rackstrap.token=%s rackstrap.ca=%x rackstrap.mac=%s",
		a.addr.Port(), testToken, pin, guestMAC)
}

func waitHello(t testing.TB, a *appliance, g *guest) *link {
	t.Helper()
	select {
	case k := <-a.links:
		return k
	case err := <-g.done:
		t.Fatalf("the machine ended: %v", err)
	case <-time.After(guestLimit):
		t.Fatal("no worker has connected")
	}
	return nil
}

func checkFacts(t *testing.T, f hardware.Facts) {
	t.Helper()
	if f.Firmware != "bios" || f.Arch != "amd64" || f.CPUs != 2 || f.MemoryBytes < 400<<20 || f.Kernel == "" || f.Vendor != "QEMU" || f.Worker != "test" {
		t.Errorf("facts are %+v", f)
	}
	if time.Since(f.Collected).Abs() > time.Hour {
		t.Errorf("the facts are of %v: the clock was not set", f.Collected)
	}
	if len(f.NICs) != 1 || f.NICs[0].MAC.String() != guestMAC || f.NICs[0].Driver != "virtio_net" || !f.NICs[0].Link {
		t.Errorf("cards are %+v", f.NICs)
	}
	disks := map[string]hardware.DiskFact{}
	for _, d := range f.Disks {
		disks[d.Transport] = d
	}
	if v, s := disks["virtio"], disks["sata"]; len(f.Disks) != 2 || v.Serial != "DISK1" || v.Bytes != 64<<20 || s.Serial != "SATA1" || s.Path != "/dev/sda" {
		t.Errorf("disks are %+v", f.Disks)
	}
}

// TestMachineWithoutAScript: a command line without our words ends in words and a
// restart.
func TestMachineWithoutAScript(t *testing.T) {
	kernel, base := assets(t)
	g := boot(t, kernel, withInit(t, base, "../cmd/rackstrap-worker"), "console=ttyS0,115200 quiet rackstrap.server=nowhere")
	g.prints(t, `FAILED: kernel command line: rackstrap.server "nowhere" is not an address with a port`)
	g.prints(t, "rackstrap.token is missing")
	g.leaves(t)
}

// BenchmarkFirstRPC compares the time from the kernel's start to the worker's first
// message with that to a bare Go init, in one run. The guest's clock counts
// instructions, two nanoseconds each, so that a busy host changes little.
func BenchmarkFirstRPC(b *testing.B) {
	kernel, base := assets(b)
	bare, own := withInit(b, base, "./testdata/bareinit"), withInit(b, base, "../cmd/rackstrap-worker")
	icount := []string{"-icount", "shift=1", "-smp", "1"}
	for b.Loop() {
		g := boot(b, kernel, bare, "console=ttyS0,115200 quiet", icount...)
		g.leaves(b)
		_, after, _ := strings.Cut(g.text(), "bare init after ")
		var ms int64
		if _, err := fmt.Sscanf(after, "%d ms", &ms); err != nil {
			b.Fatalf("%v in:\n%s", err, g.text())
		}
		ca := newAuthority(b, true)
		a := startAppliance(b, chain(ca.leaf(b), ca))
		g = boot(b, kernel, own, guestLine(a, ca.pin()), icount...)
		k := waitHello(b, a, g)
		b.ReportMetric(float64(ms), "bare-ms")
		b.ReportMetric(float64(k.hello.GetKernelMs()), "worker-ms")
		b.ReportMetric(float64(k.hello.GetKernelMs()-ms), "more-ms")
		b.Log("\n" + g.text())
	}
}
