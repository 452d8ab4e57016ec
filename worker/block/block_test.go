package block

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// sysBlock is /sys/block with one device that has a megabyte and these attributes.
func sysBlock(name string, attrs map[string]string) fstest.MapFS {
	m := fstest.MapFS{name + "/size": {Data: []byte("2048\n")}}
	for k, v := range attrs {
		m[name+"/"+k] = &fstest.MapFile{Data: []byte(v)}
	}
	return m
}

func TestWhy(t *testing.T) {
	t.Parallel()
	type attrs = map[string]string
	ro := attrs{"ro": "1\n"}
	for _, tt := range []struct {
		name   string
		attrs  attrs
		why    Why
		locked Why
	}{
		{"sda", nil, "", ""},
		{"sdaa", attrs{"ro": "0\n", "removable": "0\n", "queue/zoned": "none\n"}, "", ""},
		{"nvme0n1", attrs{"queue/zoned": "host-aware\n"}, "", ""},
		{"mmcblk0", nil, "", ""},
		{"mmcblk0gp0", nil, "", ""}, // a general purpose partition: data
		{"pmem0", nil, "", ""},
		{"pmem12.1s", attrs{"device/subsystem/devices/region12/mappings": "1\n"}, "", ""},
		{"pmem0", attrs{"device/subsystem/devices/region0/mappings": "0\n"}, NoDisk, ""}, // of UEFI HTTP boot
		{"pmem1.1", attrs{"device/subsystem/devices/region1/mappings": "0\n"}, NoDisk, ""},
		{"cciss!c0d0", nil, "", ""},
		{"sda", ro, ReadOnly, ReadOnly},
		{"mmcblk1", ro, ReadOnly, ReadOnly}, // a card with its switch at LOCK
		{"sda", attrs{"queue/zoned": "host-managed\n"}, Zoned, Zoned},
		{"mmcblk0boot0", ro, BootArea, ReadOnly},
		{"mmcblk0boot1", nil, BootArea, ""},
		{"mmcblk2rpmb", ro, BootArea, ReadOnly},
		{"sdb", attrs{"removable": "1\n"}, Removable, ""},
		{"sdb", attrs{"removable": "1\n", "ro": "1\n"}, Removable, ReadOnly},
		{"sdb", attrs{"removable": "1\n", "size": "0\n"}, Empty, ""},
		{"sdc", attrs{"ro": "1\n", "size": "0\n"}, Empty, ReadOnly},
		{"sdd", attrs{"size": "garbage"}, Empty, ""},
		{"loop0", ro, NoDisk, ReadOnly},
		{"ram15", nil, NoDisk, ""},
		{"zram0", nil, NoDisk, ""},
		{"md127", ro, NoDisk, ReadOnly},
		{"md_d0", nil, NoDisk, ""},
		{"md_home", nil, NoDisk, ""},
		{"dm-12", nil, NoDisk, ""},
		{"sr0", attrs{"removable": "1\n", "ro": "1\n"}, NoDisk, ReadOnly},
		{"fd0", attrs{"removable": "1\n", "size": "8\n"}, NoDisk, ""},
		{"nbd7", attrs{"size": "0\n"}, NoDisk, ""},
		{"zd16", nil, NoDisk, ""},
		{"drbd0", nil, NoDisk, ""},
		{"bcache0", nil, NoDisk, ""},
		{"mtdblock3", ro, NoDisk, ReadOnly},
		{"ubiblock0_0", ro, NoDisk, ReadOnly},
	} {
		all, err := List(sysBlock(tt.name, tt.attrs))
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %v, %v", tt.name, all, err)
		}
		d := all[0]
		if d.Why != tt.why || d.Locked != tt.locked || d.Name != tt.name || d.Path != strings.ReplaceAll(tt.name, "!", "/") {
			t.Errorf("%s %v: %+v", tt.name, tt.attrs, d)
		}
		if fixed := tt.why == "" || tt.why == ReadOnly || tt.why == Zoned; d.Fixed() != fixed {
			t.Errorf("%s %v: fixed is %t", tt.name, tt.attrs, d.Fixed())
		}
	}
}

func TestHiddenAndNone(t *testing.T) {
	t.Parallel()
	if all, err := List(sysBlock("nvme0c0n1", map[string]string{"hidden": "1\n"})); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := List(fstest.MapFS{}); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}

func TestSerial(t *testing.T) {
	t.Parallel()
	type attrs = map[string]string
	for _, tt := range []struct {
		attrs attrs
		want  string
	}{
		{nil, ""},
		{attrs{"serial": "V1\n"}, "V1"},
		{attrs{"device/serial": "S1      \n"}, "S1"},
		{attrs{"device/serial": "S1", "serial": "V1", "device/vpd_pg80": "\x00\x80\x00\x02P1"}, "S1"},
		{attrs{"device/serial": " \n", "serial": "V1"}, "V1"},
		{attrs{"serial": "two  words\t here\n"}, "two words here"},
		{attrs{"serial": "with\x00NULs\x00\x00"}, "with NULs"},
		{attrs{"serial": strings.Repeat("x", 500)}, strings.Repeat("x", 128)},
		{attrs{"device/vpd_pg80": "\x00\x80\x00\x08  ZC1ABCjunk"}, "ZC1ABC"},
		{attrs{"device/vpd_pg80": "\x00\x80\xff\xffshort"}, "short"},
		{attrs{"device/vpd_pg80": "\x00\x80\x00\x00none"}, ""},
		{attrs{"device/vpd_pg80": "\x00\x80"}, ""},
	} {
		all, err := List(sysBlock("sda", tt.attrs))
		if err != nil || len(all) != 1 || all[0].Serial != tt.want {
			t.Errorf("%q: %+v, %v, want %q", tt.attrs, all, err, tt.want)
		}
	}
	all, err := List(sysBlock("sda", attrs{"wwid": "eui.1", "device/wwid": "t10.ATA     QEMU   1\n", "size": strconv.Itoa(1 << 20)}))
	want := []Disk{{Name: "sda", Path: "sda", Bytes: 512 << 20, WWN: "t10.ATA QEMU 1"}}
	if err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
}
