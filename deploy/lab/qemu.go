package lab

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Descriptors of the listening sockets that QEMU inherits. Both ends exist
// before QEMU starts, so nobody waits for a socket file to appear.
const (
	serialFD = 3
	qmpFD    = 4
	netFD    = 5 // only of a machine at the switch
)

// qemuArgs is the command line of a machine as a function of its description.
// Paths are relative to the machine's directory. Without a TAP the network is netFD.
func qemuArgs(s MachineSpec, tap string) []string {
	p := platforms[s.Firmware]
	accel, cpu := "tcg,thread=multi", p.cpu
	if s.KVM {
		accel, cpu = "kvm", "host"
	}
	args := []string{
		"-name", s.Name, "-nodefaults", "-no-user-config", "-display", "none",
		"-accel", accel, "-cpu", cpu, "-smp", fmt.Sprint(s.CPUs), "-m", fmt.Sprintf("%dM", s.RAM),
		"-machine", p.machine,
		"-uuid", machineUUID(s), "-smbios", "type=1,manufacturer=Rackstrap,product=Lab,serial=" + s.Name,
		"-device", "virtio-rng-pci,addr=2",
		// wait=on holds the guest until this package has the serial line, so no
		// early output is lost; it does not wait again after a disconnect.
		"-chardev", fmt.Sprintf("socket,id=serial,fd=%d,server=on,wait=on,logfile=%s,logappend=on", serialFD, serialLog),
		"-serial", "chardev:serial",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d,server=on,wait=off", qmpFD),
		"-mon", "chardev=qmp,mode=control",
	}
	args = append(args, p.args...)
	if p.screen {
		args = append(args, "-device", "VGA,addr=1")
	}
	nic := fmt.Sprintf("%s,id=%s,netdev=net0,mac=%s,addr=%d", s.NICModel, deviceID(-1), s.MAC, nicSlot)
	if p.uefi() {
		// Without the ROM, the firmware's own driver and PXE stack serve the card.
		nic += ",romfile="
		args = append(args,
			"-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+p.code,
			"-drive", "if=pflash,format=raw,unit=1,file="+varsFile)
	} else {
		nic += fmt.Sprintf(",bootindex=%d", bootindex(s, -1))
	}
	netdev := "tap,id=net0,ifname=" + tap + ",script=no,downscript=no"
	if tap == "" {
		netdev = fmt.Sprintf("stream,id=net0,server=off,addr.type=fd,addr.str=%d", netFD)
	}
	args = append(args, "-netdev", netdev, "-device", nic)
	for i := range s.Disks {
		args = append(args, diskArgs(s, i)...)
	}
	if s.NoReboot {
		args = append(args, "-no-reboot")
	}
	return append(args, s.Args...)
}

// bootindex is the place in the boot order of a disk, or of the network card for
// -1. It begins at 1: 0 is for the ROM that QEMU adds for -kernel.
func bootindex(s MachineSpec, disk int) int {
	switch {
	case !s.DiskFirst:
		return 2 + disk
	case disk < 0:
		return 1 + len(s.Disks)
	default:
		return 1 + disk
	}
}

// deviceID is QEMU's name of a disk, or of the network card for -1.
func deviceID(disk int) string {
	if disk < 0 {
		return "nic0"
	}
	return fmt.Sprintf("dev%d", disk)
}

func diskArgs(s MachineSpec, i int) []string {
	d := s.Disks[i]
	// cache=unsafe: the guest's flushes need not reach the host's disk. Killing
	// QEMU loses nothing that the guest saw written, the host keeps its pages.
	drive := fmt.Sprintf("if=none,id=disk%d,format=raw,file=%s,cache=unsafe,discard=unmap", i, diskFile(i))
	if d.NoDiscard {
		drive = strings.Replace(drive, "discard=unmap", "discard=ignore", 1)
	}
	if d.ReadOnly {
		drive += ",readonly=on"
	}
	dev := map[Bus]string{Virtio: "virtio-blk-pci", NVMe: "nvme", SATA: "ide-hd"}[d.Bus]
	dev += fmt.Sprintf(",drive=disk%d", i)
	if p := platforms[s.Firmware]; !p.uefi() { // see ovmf.go for UEFI
		dev += fmt.Sprintf(",bootindex=%d", bootindex(s, i))
	}
	serial := d.Serial
	switch d.Bus {
	case SATA:
		dev += fmt.Sprintf(",bus=ide.%d", i)
	case Virtio:
		if d.NoDiscard {
			dev += ",discard=off,write-zeroes=off"
		}
	case NVMe:
		if serial == "" { // the device refuses to be without
			serial = fmt.Sprintf("nvme%d", i)
		}
	}
	if serial != "" {
		dev += ",serial=" + serial
	}
	return []string{"-drive", drive, "-device", dev + ",id=" + deviceID(i)}
}

// machineUUID is the same for the same machine every time, as a board's is.
func machineUUID(s MachineSpec) string {
	h := sha256.Sum256([]byte(s.Name + "/" + s.MAC.String()))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
