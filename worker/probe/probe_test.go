package probe

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o444} }

func link(to string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
}

// server is a machine with one disk of each kind, as the kernel shows it.
func server() fstest.MapFS {
	m := fstest.MapFS{
		"proc/sys/kernel/osrelease":          file("6.1.0-56-amd64\n"),
		"proc/cpuinfo":                       file("processor\t: 0\nmodel name\t: Intel(R)  Xeon(R) CPU\nprocessor\t: 1\nmodel name\t: other\n"),
		"proc/meminfo":                       file("MemTotal:       16384000 kB\nMemFree: 1 kB\n"),
		"sys/devices/system/cpu/online":      file("0-3,8\n"),
		"sys/class/dmi/id/sys_vendor":        file("Dell Inc.\n"),
		"sys/class/dmi/id/product_name":      file("PowerEdge R650\n"),
		"sys/class/dmi/id/product_uuid":      file("4C4C4544-0042\n"),
		"sys/class/dmi/id/board_serial":      file("CN1374093S00AB\n"),
		"sys/class/dmi/id/chassis_serial":    file("7XK2Z93\n"),
		"sys/class/dmi/id/chassis_asset_tag": file("Default string\n"),
		"sys/class/dmi/id/board_asset_tag":   file("A-0042\n"),
		"sys/class/dmi/id/bios_vendor":       file("Dell Inc.\n"),
		"sys/class/dmi/id/bios_version":      file("1.6.5\n"),
		"sys/class/dmi/id/bios_date":         file("04/15/2022\n"),
		"sys/firmware/efi/fw_platform":       file("64"),
		"sys/class/net/lo/address":           file("00:00:00:00:00:00\n"),
		"sys/class/net/bond0/address":        file("52:54:00:12:34:56\n"),
		"sys/class/net/eth0/address":         file("52:54:00:12:34:56\n"),
		"sys/class/net/eth0/carrier":         file("1\n"),
		"sys/class/net/eth0/speed":           file("25000\n"),
		"sys/class/net/eth1/address":         file("52:54:00:12:34:57\n"),
		"sys/class/net/eth1/speed":           file("-1\n"),
		"sys/block/loop0/size":               file("100\n"),
		"sys/block/nvme0c0n1/hidden":         file("1\n"),
		"sys/block/nvme0c0n1/size":           file("1000\n"),
		"sys/class/net/eth0/device/uevent":   file("DRIVER=mlx5_core\nPCI_CLASS=20000\n"),
		"sys/class/net/eth1/device/uevent":   file("PCI_CLASS=20000\n"),
	}
	m[secureBoot] = file("\x06\x00\x00\x00\x01")
	m["sys/class/dmi/id/product_serial"] = file("To Be Filled By O.E.M.\n")
	disk := func(name, place string, attrs map[string]string) {
		m["sys/block/"+name] = link("../devices/" + place + "/block/" + name)
		for k, v := range attrs {
			m["sys/devices/"+place+"/block/"+name+"/"+k] = file(v)
		}
	}
	disk("nvme0n1", "pci0/nvme/nvme0", map[string]string{"size": "2000\n", "device/serial": "S1  \n", "device/model": "Big NVMe  \n", "wwid": "eui.00a1\n", "device/transport": "pcie\n"})
	disk("sda", "pci0/ata1/host0/target0/0:0:0:0", map[string]string{
		"size": "4000\n", "queue/rotational": "1\n", "device/vendor": "ATA     \n", "device/model": "ST4000\n", "device/wwid": "naa.5000c5\n",
		"device/vpd_pg80": "\x00\x80\x00\x08  ZC1ABCjunk",
	})
	disk("sdb", "pci0/usb1/1-1/host3", map[string]string{"size": "8000\n", "removable": "1\n", "device/vendor": "SanDisk\n", "device/model": "Stick\n"})
	disk("sdc", "pci0/host2/port-2:0/end_device-2:0", map[string]string{"size": "8000\n", "ro": "1\n"})
	disk("sdd", "pci0/usb1/1-2", map[string]string{"size": "0\n"})
	disk("vda", "pci0/virtio1", map[string]string{"size": "16000\n", "serial": "V1\n", "device/vendor": "0x1af4\n"})
	return m
}

func TestFacts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := Facts(server(), now)
	f.Arch = ""
	want := hardware.Facts{
		Collected: now, Firmware: "uefi", SecureBoot: "on", CPUModel: "Intel(R) Xeon(R) CPU", CPUs: 5, MemoryBytes: 16384000 << 10,
		Vendor: "Dell Inc.", Product: "PowerEdge R650", UUID: "4c4c4544-0042",
		BoardSerial: "CN1374093S00AB", ChassisSerial: "7XK2Z93", AssetTag: "A-0042", BIOS: "Dell Inc. 1.6.5 04/15/2022", Kernel: "6.1.0-56-amd64",
		Disks: []hardware.DiskFact{
			{Path: "/dev/nvme0n1", Bytes: 2000 * 512, Serial: "S1", WWN: "eui.00a1", Model: "Big NVMe", Transport: "nvme"},
			{Path: "/dev/sda", Bytes: 4000 * 512, Serial: "ZC1ABC", WWN: "naa.5000c5", Model: "ST4000", Transport: "sata", Rotational: true},
			{Path: "/dev/sdb", Bytes: 8000 * 512, Model: "SanDisk Stick", Transport: "usb", Removable: true},
			{Path: "/dev/sdc", Bytes: 8000 * 512, Transport: "sas", ReadOnly: true},
			{Path: "/dev/vda", Bytes: 16000 * 512, Serial: "V1", Transport: "virtio"},
		},
		NICs: []hardware.NICFact{
			{Name: "eth0", MAC: hardware.MAC{0x52, 0x54, 0, 0x12, 0x34, 0x56}, Driver: "mlx5_core", Link: true, Mbps: 25000},
			{Name: "eth1", MAC: hardware.MAC{0x52, 0x54, 0, 0x12, 0x34, 0x57}},
		},
	}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got\n%+v\nwant\n%+v", f, want)
	}
	if !HasDisk(server()) {
		t.Error("the machine has a disk")
	}
}

func TestEmptyMachine(t *testing.T) {
	t.Parallel()
	f := Facts(fstest.MapFS{}, time.Time{})
	if f.Firmware != "bios" || f.Disks != nil || f.NICs != nil || f.CPUs != 0 || HasDisk(fstest.MapFS{}) {
		t.Errorf("facts are %+v", f)
	}
}

func TestSecureBoot(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"\x06\x00\x00\x00\x00": "off", "\x06\x00\x00\x00\x01": "on", "": "", "\x01": ""} {
		m := server()
		m[secureBoot] = file(content)
		if kind, got := firmware(m); got != want || kind != "uefi" {
			t.Errorf("%q means %q", content, got)
		}
	}
}

func TestCountList(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-3,8,10-11": 7, "": 0, "3-1": 0, "x": 0} {
		if got := countList(list); got != want {
			t.Errorf("%q counts %d, want %d", list, got, want)
		}
	}
}

// FuzzSerial: whatever a disk says of itself becomes short plain text.
func FuzzSerial(f *testing.F) {
	f.Add("\x00\x80\x00\x08  ZC1ABC")
	f.Add("\x00\x80\xff\xff\x1b[2J")
	f.Fuzz(func(t *testing.T, page string) {
		m := server()
		m["sys/devices/pci0/ata1/host0/target0/0:0:0:0/block/sda/device/vpd_pg80"] = file(page)
		for _, d := range Facts(m, time.Time{}).Disks {
			if len(d.Serial) > 128 || strings.ContainsAny(d.Serial, "\x00\x1b\n") {
				t.Errorf("serial is %q", d.Serial)
			}
		}
	})
}
