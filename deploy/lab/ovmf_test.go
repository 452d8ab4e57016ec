package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// emptyStore is a variable store as OVMF_VARS_4M.fd begins.
func emptyStore() []byte {
	store := bytes.Repeat([]byte{0xff}, 4096)
	copy(store[volumeHeaderSize:], unhex(authVariableGUID))
	binary.LittleEndian.PutUint32(store[volumeHeaderSize+16:], uint32(len(store)-volumeHeaderSize))
	return store
}

func TestNetbootFirst(t *testing.T) {
	t.Parallel()
	mac := net.HardwareAddr{0x52, 0x54, 0, 0xab, 0xcd, 0xef}
	empty := emptyStore()
	got, err := netbootFirst(empty, mac, FromNetwork)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(empty, emptyStore()) {
		t.Error("the template was changed")
	}
	if len(got) != len(empty) {
		t.Errorf("the store has %d bytes, had %d", len(got), len(empty))
	}
	body := got[volumeHeaderSize+storeHeaderSize:]
	if start := hex.EncodeToString(body[:8]); start != "aa553f0007000000" {
		t.Errorf("the first variable begins with %s", start)
	}
	for name, want := range map[string][]byte{
		"name":        utf16z("Boot0000"),
		"description": utf16z("UEFI PXEv4 (MAC:525400ABCDEF)"),
		"MAC node":    append([]byte{0x03, 0x0b, 0x25, 0x00}, mac...),
		"order":       append(utf16z("BootOrder"), 0, 0),
	} {
		if !bytes.Contains(body, want) {
			t.Errorf("the store lacks the %s: %x", name, want)
		}
	}
	if _, err := netbootFirst(make([]byte, 8192), mac, FromNetwork); err == nil {
		t.Error("a file that is no variable store was accepted")
	}
}

// TestNetbootFirstInUse: a store that is in use, as that with Microsoft's keys, keeps
// its options behind the network.
func TestNetbootFirstInUse(t *testing.T) {
	t.Parallel()
	shell, disk := option("EFI Internal Shell", fvFile), option("debian", hd)
	store := storeOf(variable("Boot0000", shell), variable("Boot0001", disk), variable("BootOrder", []byte{1, 0, 0, 0}), variable("PK", []byte("key")))
	got, err := netbootFirst(store, testMAC, fromHTTP)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Boot0000": string(shell), "Boot0001": string(disk), "PK": "key",
		"Boot0002": string(netOption(testMAC, fromHTTP)), "BootOrder": "\x02\x00\x01\x00\x00\x00",
	}
	if have := valid(t, got); !maps.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}

// TestNewVars: the store that each firmware's package has gets the network first, and
// leaves the keys where they are.
func TestNewVars(t *testing.T) {
	t.Parallel()
	for fw, p := range platforms {
		if !p.uefi() {
			continue
		}
		template, err := os.ReadFile(p.vars)
		if errors.Is(err, os.ErrNotExist) {
			t.Logf("%s is not installed", p.vars)
			continue
		}
		got, err := p.newVars(testMAC, false)
		if err != nil || len(got) != len(template) {
			t.Errorf("%s: %d bytes of %d, %v", fw, len(got), len(template), err)
			continue
		}
		vars, err := readStore(got)
		if err != nil {
			t.Fatal(err)
		}
		n, ok := findOption(vars.data, p.network)
		if order := vars.data["BootOrder"]; !ok || binary.LittleEndian.Uint16(order) != n {
			t.Errorf("%s: the network is not at the head of the boot order %x", fw, order)
		}
		if _, ok := vars.data["PK"]; ok != (fw == SecureBoot || fw == SecureBootHTTP) {
			t.Errorf("%s: has a platform key: %v", fw, ok)
		}
		path := filepath.Join(t.TempDir(), "vars")
		if err := writeVars(path, got); err != nil {
			t.Fatal(err)
		}
		if back, err := os.ReadFile(path); err != nil || !bytes.Equal(back, got) {
			t.Errorf("%s: %d bytes came back of %d, %v", fw, len(back), len(got), err)
		}
	}
}

func TestQEMUArgs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		spec     MachineSpec
		have     []string
		haveNone []string
	}{
		{
			"BIOS netboots first",
			MachineSpec{Disks: []DiskSpec{{Size: 512, Serial: "S"}, {Size: 512, Bus: SATA}}},
			[]string{"addr=3,bootindex=1", "drive=disk0,bootindex=2,serial=S", "ide-hd,drive=disk1,bootindex=3,bus=ide.1"},
			[]string{"pflash", "romfile", "-no-reboot", "kvm"},
		},
		{
			"BIOS disk first",
			MachineSpec{DiskFirst: true, NoReboot: true, Disks: []DiskSpec{{Size: 512}}},
			[]string{"addr=3,bootindex=2", "drive=disk0,bootindex=1", "-no-reboot"},
			nil,
		},
		{
			"UEFI leaves the order to its variables",
			MachineSpec{Firmware: UEFI, KVM: true, Disks: []DiskSpec{{Size: 512, Bus: NVMe, NoDiscard: true}}},
			[]string{"romfile=", "file=vars.fd", "nvme,drive=disk0,serial=nvme0", "discard=ignore", "-accel kvm"},
			[]string{"bootindex"},
		},
		{
			"Secure Boot is under system management mode",
			MachineSpec{Firmware: SecureBoot},
			[]string{"q35,graphics=off,smm=on", "property=secure,value=on", "OVMF_CODE_4M.secboot.fd", "romfile="},
			nil,
		},
		{
			"arm64 is another machine",
			MachineSpec{Firmware: ARM64, Disks: []DiskSpec{{Size: 512, Serial: "S"}}},
			[]string{"-machine virt ", "cortex-a57", "AAVMF_CODE.fd", "virtio-blk-pci,drive=disk0,serial=S", "addr=3,romfile="},
			[]string{"VGA", "bootindex", "q35"},
		},
		{
			"at the switch",
			MachineSpec{Firmware: PlainPXE},
			[]string{"-netdev stream,id=net0,server=off,addr.type=fd,addr.str=5", "addr=3,bootindex=1"},
			[]string{"tap"},
		},
	} {
		tt.spec.Name = "m"
		if err := tt.spec.complete(); err != nil {
			t.Fatal(err)
		}
		tap := "tap0"
		if platforms[tt.spec.Firmware].plainPXE {
			tap = ""
		}
		line := strings.Join(qemuArgs(tt.spec, tap), " ")
		for _, want := range tt.have {
			if !strings.Contains(line, want) {
				t.Errorf("%s: %q is not in %s", tt.name, want, line)
			}
		}
		for _, not := range tt.haveNone {
			if strings.Contains(line, not) {
				t.Errorf("%s: %q is in %s", tt.name, not, line)
			}
		}
	}
}

func TestBIOSBootIsLinked(t *testing.T) {
	t.Parallel()
	f := tempFile(t)
	boot, core := bytes.Repeat([]byte{1}, sector), bytes.Repeat([]byte{2}, 5*sector-7)
	if err := f.Truncate(4 * mib); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0x55, 0xaa}, 510); err != nil {
		t.Fatal(err)
	}
	if err := writeBIOSBoot(f, biosBoot{boot: boot, core: core}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 2*mib)
	if _, err := f.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		at   int
		want string
	}{
		{"boot.img points at the partition", 0x5c, "0008000000000000"},
		{"the drive check is off", 0x66, "9090"},
		{"the partition table stays", 440, "0000"},
		{"the boot signature stays", 510, "55aa"},
		{"core.img loads its rest", mib + 0x1f4, "01080000000000000400"},
	} {
		if have := hex.EncodeToString(got[tt.at : tt.at+len(tt.want)/2]); have != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, have, tt.want)
		}
	}
	if err := writeBIOSBoot(f, biosBoot{boot: boot[:100], core: core}); err == nil {
		t.Error("half a boot sector was accepted")
	}
}
