package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
)

// TestMachineARM64 boots an arm64 machine as DHCP would have it: shim, GRUB as Debian
// signed it, the kernel and the worker, all by TFTP from QEMU's own server. The worker
// reports its facts and has the firmware restart the machine.
func TestMachineARM64(t *testing.T) {
	ca := newAuthority(t, true)
	a := startAppliance(t, chain(ca.leaf(t), ca))
	g := bootARM64(t, guestWords(a, ca.pin()))

	k := waitHello(t, a, g)
	t.Logf("kernel start to first RPC: %d ms", k.hello.GetKernelMs())
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{Protocol: 1, Scope: "work", Machine: "m1", Boot: "B", UnixMs: time.Now().UnixMilli()}}})
	var f hardware.Facts
	m := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
	if err := json.Unmarshal(m.GetFacts().GetJson(), &f); err != nil {
		t.Fatal(err)
	}
	if f.Firmware != "uefi" || f.SecureBoot != "off" || f.Arch != "arm64" || f.CPUs != 2 || f.CPUModel == "" || f.MemoryBytes < 400<<20 || f.Vendor != "QEMU" || f.UUID != "f3b0c442-98fc-1c14-9afb-f4c8996fb924" {
		t.Errorf("facts are %+v", f)
	}
	if time.Since(f.Collected).Abs() > time.Hour {
		t.Errorf("the facts are of %v: the clock was not set", f.Collected)
	}
	if len(f.NICs) != 1 || f.NICs[0].MAC.String() != guestMAC || f.NICs[0].Driver != "virtio_net" || !f.NICs[0].Link {
		t.Errorf("cards are %+v", f.NICs)
	}
	if len(f.Disks) != 1 || f.Disks[0].Transport != "nvme" || f.Disks[0].Serial != "DISK1" {
		t.Errorf("disks are %+v", f.Disks)
	}
	k.ack(t, m.GetSeq())

	reboot := &workerpb.Assign{Assignment: &workerpb.Assignment{Workflow: "W"}, Name: "restart", Kind: "reboot", Actions: 1}
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Assign{Assign: reboot}})
	r := k.report(t)
	if r.GetReport().GetOutcome() != workerpb.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("the restart ended with %v", r)
	}
	k.ack(t, r.GetSeq())
	g.leaves(t)
	if out := g.text(); !strings.Contains(out, "this machine is m1") {
		t.Errorf("the serial console does not name the machine:\n%s", out)
	}
}

// bootARM64 starts a machine with AAVMF, which netboots with these words for the kernel.
func bootARM64(t *testing.T, words string) *guest {
	t.Helper()
	if _, err := exec.LookPath("qemu-system-aarch64"); err != nil {
		need(t, "%v (apt-get install qemu-system-arm)", err)
	}
	const code, vars = "/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"
	flash, err := os.ReadFile(vars)
	if err != nil {
		need(t, "%v (apt-get install qemu-efi-aarch64)", err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"vars": flash, "tftp/vmlinuz": unpacked(t, asset(t, "vmlinuz-arm64.zst")),
		"tftp/grub/grub.cfg": fmt.Appendf(nil, "linux (tftp)/vmlinuz console=tty0 console=ttyAMA0,115200 %s\ninitrd (tftp)/initramfs\nboot\n", words),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{
		"shimaa64.efi": asset(t, "shimaa64.efi"), "grubaa64.efi": asset(t, "grubaa64.efi"),
		"initramfs": withInitFor(t, "arm64", asset(t, "initramfs-arm64"), "../cmd/rackstrap-worker"),
	} {
		abs, err := filepath.Abs(file)
		if err == nil {
			err = os.Symlink(abs, filepath.Join(dir, "tftp", name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return start(t, "qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a57", "-m", "1024",
		"-drive", "if=pflash,format=raw,readonly=on,file="+code, "-drive", "if=pflash,format=raw,file="+filepath.Join(dir, "vars"),
		"-netdev", "user,id=n,tftp="+filepath.Join(dir, "tftp")+",bootfile=shimaa64.efi",
		"-device", "virtio-net-pci,netdev=n,romfile=,bootindex=0,mac="+guestMAC,
		"-drive", "if=none,id=d,format=raw,file.driver=null-co,file.size=32M", "-device", "nvme,drive=d,serial=DISK1", "-uuid", "f3b0c442-98fc-1c14-9afb-f4c8996fb924")
}

func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
