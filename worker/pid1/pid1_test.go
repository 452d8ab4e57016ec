package pid1

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTables: each row prints itself, and what others lie in comes before them.
func TestTables(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, c := range slices.Concat(Required(), Optional(), Firmware()) {
		rows = append(rows, c.String())
	}
	at := func(s string) int {
		i := slices.IndexFunc(rows, func(r string) bool { return strings.HasPrefix(r, s) })
		if i < 0 {
			t.Errorf("%q is in no table:\n%s", s, strings.Join(rows, "\n"))
		}
		return i
	}
	for _, pair := range [][2]string{
		{"mount -t proc /proc", "/proc/sys/kernel/panic ="},
		{"mount -t sysfs /sys", "mount -t efivarfs /sys/firmware/efi/efivars"},
		{"mount -t devtmpfs /dev -o mode=0755", "mknod -m 0666 /dev/null c 1 3"},
		{"mount -t devtmpfs /dev", "ln -s /proc/self/fd/0 /dev/stdin"},
		{"mount -t proc /proc", "ln -s /init /sbin/modprobe"},
	} {
		if at(pair[0]) > at(pair[1]) {
			t.Errorf("%q comes after %q", pair[0], pair[1])
		}
	}
	if seen := slices.Compact(slices.Sorted(slices.Values(rows))); len(seen) != len(rows) {
		t.Error("a row is there twice")
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := []Creator{
		Dir{Path: filepath.Join(dir, "a/b"), Mode: 0o755},
		Symlink{Path: filepath.Join(dir, "bin/link"), To: "/init"},
		Setting{Path: filepath.Join(dir, "etc/hosts"), Value: "x\n"},
	}
	for range 2 { // the second time everything exists
		if err := CreateAll(table); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "bin/link")); err != nil || to != "/init" {
		t.Errorf("link to %q, %v", to, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "etc/hosts")); err != nil || string(b) != "x\n" {
		t.Errorf("file is %q, %v", b, err)
	}
	err := CreateAll([]Creator{
		Setting{Path: "/proc/no/such/setting", Value: "1"},
		Mount{Type: "nosuchfs", Target: filepath.Join(dir, "m"), Data: "x=y"},
		Dir{Path: filepath.Join(dir, "last"), Mode: 0o755},
	})
	if err == nil || !strings.Contains(err.Error(), `/proc/no/such/setting = "1": `) || !strings.Contains(err.Error(), "mount -t nosuchfs "+filepath.Join(dir, "m")+" -o x=y: ") {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "last")); err != nil {
		t.Errorf("a failure stopped the table: %v", err)
	}
	if got := (Dev{Path: "/dev/sda", Type: unix.S_IFBLK, Mode: 0o600, Major: 8}).String(); got != "mknod -m 0600 /dev/sda b 8 0" {
		t.Errorf("a device prints as %s", got)
	}
}

// slowWriter does not return before it is let go.
type slowWriter struct {
	release chan struct{}
	mu      sync.Mutex
	buf     bytes.Buffer
}

func (w *slowWriter) Write(b []byte) (int, error) {
	<-w.release
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func TestConsole(t *testing.T) {
	t.Parallel()
	free, stuck := &slowWriter{release: make(chan struct{})}, &slowWriter{release: make(chan struct{})}
	kernel := &slowWriter{release: free.release}
	close(free.release)
	c := NewConsole(func() time.Duration { return 1500 * time.Millisecond }, []string{"ttyS0", "ttyS1", kmsg}, []io.Writer{free, stuck, kernel})
	c.Say("hello %s\nsecond\x1b[2J", "you")
	for range 2 * consoleLines { // a console that is stuck blocks nobody
		c.Say("more")
	}
	c.Flush(10 * time.Millisecond) // ends although one console is stuck
	close(stuck.release)
	c.Flush(10 * time.Second)
	free.mu.Lock()
	defer free.mu.Unlock()
	kernel.mu.Lock()
	defer kernel.mu.Unlock()
	if got := free.buf.String(); !strings.HasPrefix(got, "[   1.500] rackstrap: hello you\r\n[   1.500] rackstrap: second [2J\r\n") {
		t.Errorf("the serial line shows %.200q", got)
	}
	if got := kernel.buf.String(); !strings.HasPrefix(got, "<6>rackstrap: hello you\n<6>rackstrap: second [2J\n") {
		t.Errorf("the kernel's log has %.200q", got)
	}
}

func TestConsoleNames(t *testing.T) {
	t.Parallel()
	if got := strings.Join(consoleNames("tty0 ttyS0\n../etc/passwd"), " "); got != "tty0 ttyS0" {
		t.Errorf("consoles are %s", got)
	}
}

func TestPrintableIsBounded(t *testing.T) {
	t.Parallel()
	if got := printable(strings.Repeat("x", 10_000)); len(got) > maxLine+8 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	for total, want := range map[int64]int64{0: 0, 128 << 20: 64 << 20, 480 << 20: 160 << 20, 64 << 30: 1 << 30} {
		if got := heapLimit(total); got != want {
			t.Errorf("of %d MiB: %d MiB, want %d", total>>20, got>>20, want>>20)
		}
	}
	if got := memTotal([]byte("MemFree: 1 kB\nMemTotal:         491520 kB\n")); got != 480<<20 {
		t.Errorf("MemTotal is %d", got)
	}
}

func TestDiskMounts(t *testing.T) {
	t.Parallel()
	got := diskMounts("proc /proc proc rw 0 0\n/dev/vda2 /mnt ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vda1 /mnt/boot\\040efi vfat rw 0 0\n")
	if strings.Join(got, "|") != "/mnt/boot efi|/mnt" {
		t.Errorf("mounts are %q", got)
	}
}

func TestReapEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Reap(ctx); err != nil {
		t.Error(err)
	}
}
