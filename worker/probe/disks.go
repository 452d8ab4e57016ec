package probe

import (
	"io/fs"
	"path"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/block"
)

// disks lists the machine's disks. What is no disk is left out, and what has no room:
// a card reader without a card, the boot areas of an eMMC.
func disks(root fs.FS) []hardware.DiskFact {
	sys, err := fs.Sub(root, "sys/block")
	if err != nil {
		return nil
	}
	all, _ := block.List(sys)
	var out []hardware.DiskFact
	for _, d := range all {
		if !d.Fixed() && d.Why != block.Removable {
			continue
		}
		dir := path.Join("sys/block", d.Name)
		out = append(out, hardware.DiskFact{
			Path:       "/dev/" + d.Path,
			Bytes:      uint64(d.Bytes),
			Serial:     d.Serial,
			WWN:        d.WWN,
			Model:      model(root, dir),
			Transport:  transport(root, dir, d.Name),
			Rotational: text(root, path.Join(dir, "queue/rotational")) == "1",
			ReadOnly:   d.Locked != "",
			Removable:  d.Why == block.Removable,
		})
	}
	return out
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
