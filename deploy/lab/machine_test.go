package lab_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

func TestMachineNetbootsAndLosesPower(t *testing.T) {
	t.Parallel()
	lab.Require(t, "qemu-system-x86_64", "tcpdump")
	dir := t.TempDir()
	l, ctx := newLab(t, lab.Options{Dir: dir})
	pcap := filepath.Join(dir, "lan.pcap")
	c, err := l.Capture(ctx, pcap)
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.AddMachine(ctx, lab.MachineSpec{
		Name: "m1", RAM: 256,
		Disks: []lab.DiskSpec{{Size: 64 << 20, Serial: "D0"}, {Size: 32 << 20, Bus: lab.NVMe}, {Size: 16 << 20, Bus: lab.SATA, Serial: "D2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.ListenPacket(ctx, "udp4", ":67")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	packet := make([]byte, 1500)
	if m.Running() || m.PressPower(ctx) == nil {
		t.Error("a new machine must be off")
	}
	for range 2 {
		if err := m.PowerOn(ctx); err != nil {
			t.Fatal(err)
		}
		if m.PowerOn(ctx) == nil {
			t.Error("a running machine was powered on again")
		}
		// The network card's ROM shows its address and asks for a lease.
		if err := m.WaitSerial(ctx, "iPXE"); err != nil {
			t.Fatal(err)
		}
		if err := m.WaitSerial(ctx, m.MAC().String()); err != nil {
			t.Fatal(err)
		}
		n, _, err := server.ReadFrom(packet)
		if err != nil || !bytes.Contains(packet[:n], m.MAC()) {
			t.Fatalf("the first DHCP packet is not the machine's: %x (%v)", packet[:n], err)
		}
		if at, ok := m.Console().TimeOf("iPXE"); !ok || at.Before(m.PoweredOn()) {
			t.Errorf("iPXE came at %v, power at %v", at, m.PoweredOn())
		}
		if err := m.PowerOff(); err != nil {
			t.Fatal(err)
		}
		<-m.Done()
	}
	if err := m.WaitSerial(ctx, "never printed"); err == nil || !strings.Contains(err.Error(), "iPXE") {
		t.Errorf("waiting for a machine that is off gave %v, want an error with its last lines", err)
	}
	log, err := os.ReadFile(m.SerialLog())
	if err != nil || bytes.Count(log, []byte("SeaBIOS")) != 2 {
		t.Errorf("the serial log shows %d starts, want 2 (%v)", bytes.Count(log, []byte("SeaBIOS")), err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	frames, err := os.ReadFile(pcap)
	if err != nil || !bytes.Contains(frames, []byte("PXEClient:Arch:00000")) {
		t.Errorf("%d bytes captured hold no DHCP packet of the machine (%v)", len(frames), err)
	}
}

func TestMachineResetAndScreen(t *testing.T) {
	t.Parallel()
	lab.Require(t, "qemu-system-x86_64")
	l, ctx := newLab(t, lab.Options{})
	m, err := l.AddMachine(ctx, lab.MachineSpec{Name: "m1", RAM: 256, Firmware: lab.UEFI})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.WaitSerial(ctx, "PXE over IPv4"); err != nil {
		t.Fatal(err)
	}
	t.Logf("UEFI starts PXE after %.1f s", time.Since(m.PoweredOn()).Seconds())
	png := filepath.Join(t.TempDir(), "screen.png")
	if err := m.Screendump(ctx, png); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(png); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) {
		t.Errorf("the screendump is not a PNG file (%v)", err)
	}
	if err := m.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.WaitEvent(ctx, "RESET", 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if m.Running() {
		t.Error("the machine outlived its lab")
	}
	if _, err := os.Stat(l.Dir()); err == nil {
		t.Error("the temporary directory outlived the lab")
	}
}

// TestFirmwaresAskTheNetwork: what each firmware says it is in its first DHCP packet,
// and that it comes before anything else that the firmware might try.
func TestFirmwaresAskTheNetwork(t *testing.T) {
	t.Parallel()
	lab.Require(t, "qemu-system-x86_64", "qemu-system-aarch64")
	l, ctx := newLab(t, lab.Options{})
	server, err := l.ListenPacket(ctx, "udp4", ":67")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	packet := make([]byte, 1500)
	for _, tt := range []struct {
		firmware lab.Firmware
		class    string
	}{
		{lab.PlainPXE, "PXEClient:Arch:00000:"},
		{lab.UEFIHTTP, "HTTPClient:Arch:00016:"},
		{lab.SecureBoot, "PXEClient:Arch:00007:"},
		{lab.ARM64, "PXEClient:Arch:00011:"},
		{lab.ARM64HTTP, "HTTPClient:Arch:00019:"},
	} {
		m, err := l.AddMachine(ctx, lab.MachineSpec{Name: string(tt.firmware), RAM: 512, Firmware: tt.firmware, Disks: []lab.DiskSpec{{Size: 1 << 20}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.PowerOn(ctx); err != nil {
			t.Fatal(err)
		}
		if until, ok := ctx.Deadline(); ok {
			_ = server.SetReadDeadline(until)
		}
		n, _, err := server.ReadFrom(packet)
		if err != nil || !bytes.Contains(packet[:n], m.MAC()) || !bytes.Contains(packet[:n], []byte(tt.class)) {
			t.Fatalf("%s: its first DHCP packet has no %s: %q (%v)\n%s", tt.firmware, tt.class, packet[:n], err, m.Console().Text())
		}
		if ipxe := []byte{77, 4, 'i', 'P', 'X', 'E'}; bytes.Contains(packet[:n], ipxe) {
			t.Errorf("%s: its first DHCP packet is an iPXE's: %q", tt.firmware, packet[:n])
		}
		t.Logf("%s: first packet after %.1f s", tt.firmware, time.Since(m.PoweredOn()).Seconds())
		if err := m.PowerOff(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMachineThatCannotStart(t *testing.T) {
	t.Parallel()
	lab.Require(t, "qemu-system-x86_64")
	l, ctx := newLab(t, lab.Options{})
	m, err := l.AddMachine(ctx, lab.MachineSpec{Name: "m1", NICModel: "no-such-card"})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err == nil || !strings.Contains(err.Error(), "no-such-card") {
		t.Errorf("the error is %v, want what QEMU said", err)
	}
	if m.Running() {
		t.Error("a machine that did not start is running")
	}
}

func TestMachineSpecErrors(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	l, ctx := newLab(t, lab.Options{})
	for _, tt := range []struct {
		name string
		spec lab.MachineSpec
		want string
	}{
		{"name", lab.MachineSpec{Name: "../x"}, `machine name "../x"`},
		{"firmware", lab.MachineSpec{Name: "a", Firmware: "coreboot"}, "use one of [bios pxe uefi"},
		{"processor", lab.MachineSpec{Name: "a", Firmware: lab.ARM64, KVM: true}, "leave KVM off"},
		{"no sata", lab.MachineSpec{Name: "a", Firmware: lab.ARM64, Disks: []lab.DiskSpec{{Size: 512, Bus: lab.SATA}}}, "no sata bus"},
		{"bus", lab.MachineSpec{Name: "a", Disks: []lab.DiskSpec{{Size: 512, Bus: "floppy"}}}, "disk 0: bus"},
		{"size", lab.MachineSpec{Name: "a", Disks: []lab.DiskSpec{{Size: 5}}}, "multiple of 512"},
		{"no size", lab.MachineSpec{Name: "a", Disks: []lab.DiskSpec{{}}}, "needs a size"},
		{"serial", lab.MachineSpec{Name: "a", Disks: []lab.DiskSpec{{Size: 512, Serial: "a,b"}}}, "serial"},
	} {
		if _, err := l.AddMachine(ctx, tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want one with %q", tt.name, err, tt.want)
		}
	}
}
