package probe

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// sectorSize is the unit of /sys/block/*/size, whatever the disk's own sectors are.
const sectorSize = 512

// virtual are block devices that are no disks of the machine.
var virtual = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "zd", "drbd", "bcache"}

// disks lists the machine's disks. A card reader without a card has size 0; the
// second path of an NVMe disk (nvme0c0n1) is hidden.
func disks(root fs.FS) []hardware.DiskFact {
	entries, _ := fs.ReadDir(root, "sys/block")
	var out []hardware.DiskFact
	for _, e := range entries {
		name := e.Name()
		dir := path.Join("sys/block", name)
		if isVirtual(name) || text(root, path.Join(dir, "hidden")) == "1" {
			continue
		}
		size := number(root, path.Join(dir, "size"))
		if size == 0 {
			continue
		}
		out = append(out, hardware.DiskFact{
			// The kernel writes a / in a device name as !, as in cciss!c0d0.
			Path:       "/dev/" + strings.ReplaceAll(name, "!", "/"),
			Bytes:      size * sectorSize,
			Serial:     serial(root, dir),
			WWN:        first(root, path.Join(dir, "device/wwid"), path.Join(dir, "wwid")),
			Model:      model(root, dir),
			Transport:  transport(root, dir, name),
			Rotational: text(root, path.Join(dir, "queue/rotational")) == "1",
			ReadOnly:   text(root, path.Join(dir, "ro")) == "1",
			Removable:  text(root, path.Join(dir, "removable")) == "1",
		})
	}
	return out
}

func isVirtual(name string) bool {
	for _, p := range virtual {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func first(root fs.FS, names ...string) string {
	for _, n := range names {
		if s := text(root, n); s != "" {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return ""
}

// model is what the disk calls itself; SCSI disks have a vendor of their own.
func model(root fs.FS, dir string) string {
	m := text(root, path.Join(dir, "device/model"))
	// A SATA disk's vendor reads ATA, a virtio disk's is a number.
	if v := text(root, path.Join(dir, "device/vendor")); m != "" && v != "" && v != "ATA" && !strings.HasPrefix(v, "0x") {
		m = v + " " + m
	}
	return strings.Join(strings.Fields(m), " ")
}

// serial is where the disk's driver puts it: NVMe and MMC below device, virtio at
// the disk, SCSI and SATA in the vital product data page 80h, the unit serial number
// (SPC-4 section 7.8.15): a header of four bytes, then text.
func serial(root fs.FS, dir string) string {
	if s := first(root, path.Join(dir, "device/serial"), path.Join(dir, "serial")); s != "" {
		return s
	}
	b := raw(root, path.Join(dir, "device/vpd_pg80"))
	if len(b) < 4 {
		return ""
	}
	b = b[4:min(len(b), 4+int(b[2])<<8+int(b[3]))]
	return strings.Join(strings.Fields(string(bytes.Trim(b, "\x00 "))), " ")
}

// transport is how the disk is attached, from its place in the device tree.
func transport(root fs.FS, dir, name string) string {
	place, err := fs.ReadLink(root, dir)
	if err != nil {
		place = ""
	}
	switch {
	case strings.HasPrefix(name, "nvme"):
		if t := text(root, path.Join(dir, "device/transport")); t != "" && t != "pcie" {
			return "nvme-" + t
		}
		return "nvme"
	case strings.HasPrefix(name, "mmcblk"):
		return "mmc"
	case strings.Contains(place, "/usb"):
		return "usb"
	case strings.Contains(place, "/virtio"):
		return "virtio"
	case strings.Contains(place, "/ata"):
		return "sata"
	case strings.Contains(place, "/end_device-"):
		return "sas"
	case strings.Contains(place, "/rport-"):
		return "fc"
	case strings.Contains(place, "/session"):
		return "iscsi"
	case strings.HasPrefix(name, "xvd"):
		return "xen"
	case strings.HasPrefix(name, "sd"):
		return "scsi"
	}
	return ""
}

// HasDisk reports whether there is a fixed disk that could take an installation.
func HasDisk(root fs.FS) bool {
	for _, d := range disks(root) {
		if !d.Removable && !d.ReadOnly && d.Transport != "usb" {
			return true
		}
	}
	return false
}
