//go:build lab_image

// Two starts of a whole operating system take minutes under emulation: `make lab`
// runs them, with -tags lab_image. The installs of `make test` start the same image.

package lab_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

const seedAddr = "10.77.0.50"

// makeSeed writes a NoCloud seed disk and the key that it lets in, and returns
// both paths.
func makeSeed(t *testing.T, ctx context.Context, mac net.HardwareAddr) (seed, key string) {
	t.Helper()
	dir := t.TempDir()
	seed, key = filepath.Join(dir, "seed"), filepath.Join(dir, "key")
	command(t, ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	pub, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	command(t, ctx, "mkfs.vfat", "-C", "-n", "CIDATA", seed, "1024")
	for name, text := range map[string]string{
		"meta-data":      "instance-id: i-1\nlocal-hostname: seeded\n",
		"user-data":      "#cloud-config\nssh_authorized_keys: [" + strings.TrimSpace(string(pub)) + "]\n",
		"network-config": fmt.Sprintf("version: 2\nethernets:\n  lan:\n    match: {macaddress: %q}\n    addresses: [%s/24]\n    accept-ra: false\n", mac, seedAddr),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, ctx, "mcopy", "-i", seed, path, "::")
	}
	return seed, key
}

func command(t *testing.T, ctx context.Context, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// TestDebianImageStarts starts the real image from disk, on a disk larger than
// it, and looks round in it over SSH.
func TestDebianImageStarts(t *testing.T) {
	t.Parallel()
	lab.Require(t, "qemu-system-x86_64", "mmdebstrap", "sfdisk", "mcopy", "mkfs.vfat", "zstd", "ssh", "ssh-keygen")
	for _, firmware := range []lab.Firmware{lab.BIOS, lab.UEFI} {
		t.Run(string(firmware), func(t *testing.T) {
			t.Parallel()
			startImage(t, firmware)
		})
	}
}

func startImage(t *testing.T, firmware lab.Firmware) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	img, err := lab.DebianImage(ctx, "", func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	raw := filepath.Join(t.TempDir(), "debian.raw")
	if err := img.Unpack(ctx, raw); err != nil {
		t.Fatal(err)
	}
	l, _ := newLab(t, lab.Options{})
	mac := lab.RandomMAC()
	seed, key := makeSeed(t, ctx, mac)
	m, err := l.AddMachine(ctx, lab.MachineSpec{
		Name: "m1", MAC: mac, Firmware: firmware, RAM: 512, DiskFirst: true,
		Disks: []lab.DiskSpec{{From: raw, Size: 4 << 30}, {From: seed, ReadOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	// In the order in which they appear.
	for _, mark := range []string{"Linux version", "Run /init as init process", "Welcome to Debian", "seeded login:"} {
		if err := m.WaitSerial(ctx, mark); err != nil {
			t.Fatal(err)
		}
		at, _ := m.Console().TimeOf(mark)
		t.Logf("%5.1f s %s", at.Sub(m.PoweredOn()).Seconds(), mark)
	}
	look := []struct{ command, want string }{
		{"hostname", "seeded\n"},
		{"sudo cloud-init status --wait", "status: done\n"},
		{"findmnt -no SOURCE,FSTYPE /", "/dev/vda3 ext4\n"},
		{"test $(findmnt -nbo SIZE /) -gt 3500000000 && echo grown", "grown\n"},
		{"sudo ls /boot/efi/EFI", "BOOT\ndebian\n"},
		{"ls /etc/ssh/ssh_host_*.pub", "/etc/ssh/ssh_host_ecdsa_key.pub\n/etc/ssh/ssh_host_ed25519_key.pub\n"},
		{"systemctl --failed --no-legend", ""},
		{"wc -c </etc/machine-id", "33\n"},
	}
	var all []string
	for _, l := range look {
		all = append(all, l.command)
	}
	answers := strings.Split(ssh(t, ctx, l, key, strings.Join(all, "; echo ==; ")), "==\n")
	t.Logf("%5.1f s SSH, cloud-init done", time.Since(m.PoweredOn()).Seconds())
	if len(answers) != len(look) {
		t.Fatalf("%d answers to %d questions: %q", len(answers), len(look), answers)
	}
	for i, l := range look {
		// cloud-init status --wait prints dots before its last line.
		if got := strings.TrimLeft(answers[i], ".\n"); got != l.want {
			t.Errorf("%s: %q, want %q", l.command, got, l.want)
		}
	}
}

// ssh runs a command on the seeded machine. The port answers resets until the
// server is up, so the first connection is tried until one is accepted.
func ssh(t *testing.T, ctx context.Context, l *lab.Lab, key, command string) string {
	t.Helper()
	addr := netip.AddrPortFrom(netip.MustParseAddr(seedAddr), 22).String()
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		conn, err := l.Dial(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
	out, err := l.Command(ctx, "ssh", "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-o", "ConnectTimeout=60", "debian@"+seedAddr, command).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh: %v: %s", err, out)
	}
	return string(out)
}
