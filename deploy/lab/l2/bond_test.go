package l2

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// TestLinuxBond: the bonding driver of a real kernel takes the switch for its partner,
// with both cards, and loses one of them when its cable is cut.
func TestLinuxBond(t *testing.T) {
	t.Parallel()
	const kernel, base = "../../../ipxe/embedded/vmlinuz-amd64", "../../../ipxe/embedded/initramfs-amd64"
	if _, err := os.Stat(base); err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal(err)
		}
		t.Skipf("%v (run `make assets`)", err)
	}
	group := &LACP{Group: 7, Fast: true}
	s := newSwitch(t, Port{LACP: group}, Port{LACP: group}, Port{})
	host := plug(t, s, 2)
	_ = host.SetDeadline(time.Now().Add(3 * time.Minute))
	bondedGuest(t, s, kernel, bondInitramfs(t, base))

	// Nothing passes the two ports before LACP is up, so a packet says that it is.
	partner := NewTable().chassis
	waitFor := func(want string) {
		t.Helper()
		for buf := make([]byte, maxFrame); ; {
			n, err := readFrame(host, buf)
			if err != nil {
				t.Fatalf("waiting for %q: %v", want, err)
			}
			if d, ok := parseUDP(buf[:n]); ok && d.to == 4242 {
				if text := string(d.data); strings.Contains(text, want) {
					t.Log(text)
					return
				}
			}
		}
	}
	waitFor(fmt.Sprintf("partner %s, ports 2", partner))
	if err := writeFrame(host, hello("good morning")); err != nil {
		t.Fatal(err)
	}
	waitFor("ports 2, heard good morning")
	if err := s.do(func(time.Time) { s.unplug(1) }); err != nil {
		t.Fatal(err)
	}
	// The driver sees by its timer, 3 s after the last LACPDU, that nobody is there.
	waitFor("ports 1")
	if err := writeFrame(host, hello("good night")); err != nil {
		t.Fatal(err)
	}
	waitFor("ports 1, heard good night")
}

// hello is a broadcast to the guest.
func hello(text string) []byte {
	b := udp(4242, 4242, text)
	copy(b, all[:])
	copy(b[headerSize+12:], []byte{10, 99, 0, 1, 10, 255, 255, 255})
	ip := b[headerSize:][:20]
	ip[10], ip[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(ip[i])<<8 | uint32(ip[i+1])
	}
	sum = sum&0xffff + sum>>16
	sum = ^(sum&0xffff + sum>>16)
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	udpChecksum(b, headerSize+20, 8+len(text))
	return b
}

// bondInitramfs is the worker's initramfs, for its modules, with another init: a later
// file replaces an earlier one.
func bondInitramfs(t *testing.T, base string) string {
	t.Helper()
	dir := t.TempDir()
	prog := filepath.Join(dir, "init")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", prog, "./testdata/bondinit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(prog)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	buf := bytes.NewBuffer(archive)
	buf.Write(make([]byte, (4-buf.Len()%4)%4))
	if err := bootimage.WriteCPIO(buf, []bootimage.Entry{bootimage.Bytes("init", 0o755, code)}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "initramfs")
	if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// bondedGuest starts a machine with a card at port 0 and one at port 1.
func bondedGuest(t *testing.T, s *Switch, kernel, initramfs string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-accel", "tcg", "-machine", "q35", "-cpu", "max", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-kernel", kernel, "-initrd", initramfs, "-append", "console=ttyS0,115200 quiet panic=-1")
	// The driver takes no card for LACP whose speed and duplex it does not know.
	for port := range 2 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(fds[0]), ""), os.NewFile(uintptr(fds[1]), "")
		conn, err := net.FileConn(ours)
		if err != nil {
			t.Fatal(err)
		}
		_ = ours.Close()
		defer theirs.Close()
		if err := s.Plug(port, conn); err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
		cmd.Args = append(cmd.Args,
			"-netdev", fmt.Sprintf("stream,id=n%d,server=off,addr.type=fd,addr.str=%d", port, 3+port),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=n%d,romfile=,speed=1000,duplex=full,mac=52:54:00:00:07:%02x", port, port))
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed, or gave up
		_ = s.Close()  // and then nobody should wait for it
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("the guest said:\n%s", said.String())
		}
	})
}
