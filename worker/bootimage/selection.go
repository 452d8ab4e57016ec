package bootimage

import (
	"fmt"
	"path"
	"strings"
)

// Selection says which modules of a kernel an initramfs has. Patterns are
// those of [path.Match] on the module's path below "kernel/" without ".ko"; one
// that ends in "/" takes everything below.
type Selection struct {
	Want []string
	// Skip leaves out what Want takes. A module that another one needs comes
	// along all the same.
	Skip []string
}

// ServerModules is the selection for the worker: everything needed to reach
// the network and the disks of a server or a virtual machine. arch is the
// architecture as Debian names it.
func ServerModules(arch string) Selection {
	s := commonModules()
	s.Want = append(s.Want, archModules[arch]...)
	return s
}

// archModules are what only the machines of one architecture have.
var archModules = map[string][]string{
	"amd64": {"arch/x86/crypto/crc*", "arch/x86/crypto/sha256*", "drivers/i2c/busses/i2c-i801", "drivers/i2c/busses/i2c-piix4"},
	"arm64": {
		"arch/arm64/crypto/crc*", "arch/arm64/crypto/sha2*",
		// The management controllers of many arm64 servers are reached over SMBus (SSIF), on
		// these masters.
		"drivers/i2c/busses/i2c-designware-*", "drivers/i2c/busses/i2c-thunderx", "drivers/i2c/busses/i2c-xgene-slimpro",
		"drivers/i2c/busses/i2c-xlp9xx", "drivers/i2c/busses/i2c-imx", "drivers/mailbox/mailbox-xgene-slimpro",
		// Where network and SATA are part of the processor, they hang on its lanes and
		// lines: Marvell Armada, APM X-Gene, Socionext SynQuacer.
		"drivers/phy/marvell/", "drivers/phy/phy-xgene", "drivers/regulator/fixed",
		"drivers/gpio/gpio-xgene-sb", "drivers/gpio/gpio-mb86s7x",
	},
}

func commonModules() Selection {
	return Selection{
		Want: []string{
			// Network cards and their PHYs, bonds and VLANs.
			"drivers/net/ethernet/", "drivers/staging/qlge/", "drivers/net/phy/", "drivers/net/mdio/", "drivers/net/pcs/",
			"drivers/net/bonding/", "drivers/net/vmxnet3/", "drivers/net/hyperv/", "drivers/net/fjes/", "drivers/net/mii",
			"drivers/net/mdio", "drivers/net/net_failover", "drivers/net/sungem_phy", "drivers/net/virtio_net",
			"drivers/net/xen-netfront", "drivers/net/usb/", "net/8021q/", "net/packet/",
			// Disks and what hides them: RAID controllers, HBAs, Intel VMD,
			// persistent memory, eMMC, UFS.
			"drivers/nvme/host/", "drivers/scsi/", "drivers/message/fusion/", "drivers/ata/", "drivers/ufs/", "drivers/mmc/",
			"drivers/nvdimm/", "drivers/acpi/nfit/", "drivers/pci/controller/",
			"drivers/block/virtio_blk", "drivers/block/loop", "drivers/block/xen-blkfront", "drivers/block/mtip32xx/",
			// Software RAID, and the device mapper as far as LVM and
			// multipath need it.
			"drivers/md/md-mod", "drivers/md/linear", "drivers/md/raid*", "drivers/md/dm-mod", "drivers/md/dm-mirror",
			"drivers/md/dm-raid", "drivers/md/dm-snapshot", "drivers/md/dm-multipath", "drivers/md/dm-round-robin",
			"drivers/md/dm-queue-length", "drivers/md/dm-service-time",
			// File systems, with the code pages that FAT asks for by name.
			"fs/ext4/", "fs/xfs/", "fs/btrfs/", "fs/fat/", "fs/efivarfs/",
			"fs/nls/nls_ascii", "fs/nls/nls_cp437", "fs/nls/nls_iso8859-1", "fs/nls/nls_utf8",
			// Checksums that those ask for by an alias that no dependency names.
			"crypto/crc*", "crypto/xxhash_generic", "crypto/blake2b_generic",
			// Virtual machines.
			"drivers/virtio/", "drivers/hv/", "drivers/char/virtio_console", "drivers/char/hw_random/", "drivers/pci/xen-pcifront",
			"drivers/firmware/qemu_fw_cfg",
			// Out-of-band management and firmware tables.
			"drivers/char/ipmi/", "drivers/firmware/iscsi_ibft", "drivers/firmware/dmi-sysfs", "drivers/acpi/button",
			// Keyboards and USB disks: remote consoles are USB devices.
			"drivers/usb/core/usbcore", "drivers/usb/common/", "drivers/usb/host/", "drivers/usb/storage/", "drivers/usb/roles/",
			"drivers/hid/hid", "drivers/hid/hid-generic", "drivers/hid/hid-hyperv", "drivers/hid/usbhid/usbhid",
			"drivers/input/serio/hyperv-keyboard",
		},
		Skip: []string{
			// Telephones, WAN modems and cables between two computers.
			"drivers/net/usb/cdc-phonet", "drivers/net/usb/cdc_mbim", "drivers/net/usb/hso", "drivers/net/usb/huawei_cdc_ncm",
			"drivers/net/usb/ipheth", "drivers/net/usb/kalmia", "drivers/net/usb/lg-vl600", "drivers/net/usb/qmi_wwan",
			"drivers/net/usb/sierra_net", "drivers/net/usb/cx82310_eth", "drivers/net/usb/gl620a", "drivers/net/usb/net1080",
			"drivers/net/usb/plusb", "drivers/net/usb/zaurus",
			// For tests, for serving disks to others, for other buses' adapters.
			"drivers/scsi/scsi_debug", "drivers/scsi/qla2xxx/tcm_qla2xxx", "drivers/nvme/host/nvme-rdma",
			"drivers/usb/host/u132-hcd", "drivers/usb/host/sl811*",
			// Tapes, and card readers other than the SDHCI that eMMC hangs on.
			"drivers/scsi/st", "drivers/scsi/ch", "drivers/usb/storage/ums-*", "drivers/mmc/host/cb710-mmc",
			"drivers/mmc/host/rtsx*", "drivers/mmc/host/sdricoh_cs", "drivers/mmc/host/tifm_sd", "drivers/mmc/host/toshsd",
			"drivers/mmc/host/ushc", "drivers/mmc/host/via-sdmmc", "drivers/mmc/host/vub300", "drivers/mmc/host/wbsd",
			// PC Cards: nothing boots from them, and their bridges' drivers
			// are not here.
			"drivers/net/ethernet/*/*_cs", "drivers/scsi/pcmcia/*", "drivers/ata/pata_pcmcia",
		},
	}
}

// Select returns the paths of the modules of t that s wants, and of all that
// those need through modules.dep and modules.softdep. A soft dependency that
// the kernel does not have is ignored, as modprobe does.
//
// It returns an error when nothing matches, when a pattern is malformed, and
// when modules.dep names a file that it has no line for.
func (s Selection) Select(t *Tree) (map[string]bool, error) {
	c := closure{tree: t, byPath: map[string]Module{}, byName: map[string]string{}, keep: map[string]bool{}}
	for _, m := range t.Modules {
		c.byPath[m.Path] = m
		c.byName[m.Name()] = m.Path
	}
	for _, m := range t.Modules {
		take, err := s.takes(m.Path)
		if err != nil {
			return nil, err
		}
		if !take {
			continue
		}
		if err := c.add(m.Path); err != nil {
			return nil, err
		}
	}
	if len(c.keep) == 0 {
		return nil, fmt.Errorf("none of the kernel's %d modules is wanted", len(t.Modules))
	}
	return c.keep, nil
}

func (s Selection) takes(file string) (bool, error) {
	want, err := matchesAny(s.Want, file)
	if err != nil || !want {
		return false, err
	}
	skip, err := matchesAny(s.Skip, file)
	return !skip, err
}

func matchesAny(patterns []string, file string) (bool, error) {
	name := strings.TrimPrefix(strings.TrimSuffix(file, ".ko"), "kernel/")
	for _, p := range patterns {
		if strings.HasSuffix(p, "/") {
			if strings.HasPrefix(name, p) {
				return true, nil
			}
			continue
		}
		ok, err := path.Match(p, name)
		if err != nil {
			return false, fmt.Errorf("module pattern %q: %w", p, err)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}

type closure struct {
	tree   *Tree
	byPath map[string]Module
	byName map[string]string
	keep   map[string]bool
}

func (c *closure) add(file string) error {
	if c.keep[file] {
		return nil
	}
	m, ok := c.byPath[file]
	if !ok {
		return fmt.Errorf("modules.dep: %s is needed but has no line (run depmod again)", file)
	}
	c.keep[file] = true
	for _, dep := range m.Deps {
		if err := c.add(dep); err != nil {
			return err
		}
	}
	for _, soft := range c.tree.Softdep {
		if soft.Name != m.Name() {
			continue
		}
		for _, word := range append(soft.Pre[:len(soft.Pre):len(soft.Pre)], soft.Post...) {
			for _, file := range c.resolve(word) {
				if err := c.add(file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// resolve returns the files for a module's name or, if there is no such
// module, for every module with a matching alias: several implementations of
// one checksum share an alias, and which one fits depends on the processor.
func (c *closure) resolve(word string) []string {
	if file, ok := c.byName[ModuleName(word)]; ok {
		return []string{file}
	}
	var files []string
	for _, a := range c.tree.Alias {
		if ok, err := path.Match(a.Pattern, word); err == nil && ok {
			if file, ok := c.byName[a.Name]; ok {
				files = append(files, file)
			}
		}
	}
	return files
}
