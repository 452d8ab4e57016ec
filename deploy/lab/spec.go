package lab

import (
	"errors"
	"fmt"
	"net"
	"regexp"

	"github.com/rackstrap/rackstrap/deploy/lab/l2"
)

// Bus is how a disk is attached.
type Bus string

// The buses a disk can be on.
const (
	Virtio Bus = "virtio"
	NVMe   Bus = "nvme"
	SATA   Bus = "sata"
)

// DiskSpec describes one disk.
type DiskSpec struct {
	Size   int64  // bytes; 0 takes the size of From
	Serial string // at most 20 characters, which is what virtio-blk carries
	Bus    Bus    // Virtio if empty
	// From is a raw file whose content the disk starts with. The file is copied.
	From string
	// NoDiscard makes the disk refuse discards, as old ones do.
	NoDiscard bool
	ReadOnly  bool
}

// MachineSpec describes a machine. It boots the network first, then its disks
// in their order.
type MachineSpec struct {
	Name     string
	MAC      net.HardwareAddr // random if nil
	Firmware Firmware         // BIOS if empty
	RAM      int              // MiB, 512 if 0
	CPUs     int              // 1 if 0
	Disks    []DiskSpec
	NICModel string // a QEMU device, virtio-net-pci if empty
	// Port plugs the machine into the lab's switch, at a port like this; nil: straight
	// into the bridge, but for PlainPXE. Such a lab cannot be detached from.
	Port *l2.Port
	// DiskFirst turns the boot order round: the network only if no disk boots.
	DiskFirst bool
	// KVM uses /dev/kvm instead of emulation. It is never chosen by itself: on
	// some hosts the device opens and then hangs for ever.
	KVM bool
	// NoReboot ends QEMU where the guest would restart.
	NoReboot bool
	// Args are appended to QEMU's command line.
	Args []string
}

var serialRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,20}$`)

// complete fills defaults in and checks the rest.
func (s *MachineSpec) complete() error {
	if !nameRE.MatchString(s.Name) {
		return fmt.Errorf("machine name %q: use up to 31 of a-z, 0-9 and -", s.Name)
	}
	if s.MAC == nil {
		s.MAC = RandomMAC()
	}
	if s.Firmware == "" {
		s.Firmware = BIOS
	}
	if s.RAM == 0 {
		s.RAM = 512
	}
	if s.CPUs == 0 {
		s.CPUs = 1
	}
	if s.NICModel == "" {
		s.NICModel = "virtio-net-pci"
	}
	p, ok := platforms[s.Firmware]
	if !ok {
		return fmt.Errorf("machine %s: firmware %q: use one of %s", s.Name, s.Firmware, Firmwares())
	}
	if s.KVM && p.binary != x86 {
		return fmt.Errorf("machine %s: firmware %s is of another processor than /dev/kvm (leave KVM off)", s.Name, s.Firmware)
	}
	for i := range s.Disks {
		if err := s.Disks[i].complete(); err != nil {
			return fmt.Errorf("machine %s: disk %d: %w", s.Name, i, err)
		}
		if s.Disks[i].Bus == SATA && p.binary != x86 {
			return fmt.Errorf("machine %s: disk %d: firmware %s has no sata bus: use virtio or nvme", s.Name, i, s.Firmware)
		}
	}
	return nil
}

func (d *DiskSpec) complete() error {
	if d.Bus == "" {
		d.Bus = Virtio
	}
	switch {
	case d.Bus != Virtio && d.Bus != NVMe && d.Bus != SATA:
		return fmt.Errorf("bus %q: use virtio, nvme or sata", d.Bus)
	case d.Size < 0 || d.Size%512 != 0:
		return fmt.Errorf("size %d is not a multiple of 512 bytes", d.Size)
	case d.Size == 0 && d.From == "":
		return errors.New("needs a size or a file to start from")
	case !serialRE.MatchString(d.Serial):
		return fmt.Errorf("serial %q: use up to 20 letters, digits, . _ and -", d.Serial)
	}
	return nil
}
