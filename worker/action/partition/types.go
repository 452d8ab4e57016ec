package partition

import (
	"encoding/binary"
	"fmt"

	"github.com/rackstrap/rackstrap/hardware"
)

// For says in words what the table says that a partition is for, or else the table's own
// code.
func (t Table) For(e Entry) string {
	if t.Scheme == MBR {
		if w := kinds[e.Kind]; w != "" {
			return w
		}
		return fmt.Sprintf("type 0x%02x", e.Kind)
	}
	id := GUIDText(e.Type)
	if w := types[id]; w != "" {
		return w
	}
	return "type " + id
}

// GUIDText writes a GUID of a table as people do: the first three fields are swapped in
// the bytes (UEFI specification 2.10, appendix A).
func GUIDText(b [16]byte) string {
	le, be := binary.LittleEndian, binary.BigEndian
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", le.Uint32(b[0:]), le.Uint16(b[4:]), le.Uint16(b[6:]), be.Uint16(b[8:]), b[10:])
}

// types are those of a GPT that servers have: the UEFI specification 2.10 table 5-7, the
// UAPI group's Discoverable Partitions Specification, and what the systems themselves
// document.
var types = map[string]string{
	"c12a7328-f81f-11d2-ba4b-00a0c93ec93b": "EFI system",
	"21686148-6449-6e6f-744e-656564454649": "BIOS boot",
	"0fc63daf-8483-4772-8e79-3d69d8477de4": "Linux file system",
	"0657fd6d-a4ab-43c4-84e5-0933c84b4f4f": "Linux swap",
	"e6d6d379-f507-44c2-a23c-238f2a3df928": "Linux LVM",
	"a19d880f-05fc-4d3b-a006-743f0f84911e": "Linux RAID",
	"ca7d7ccb-63ed-4c53-861c-1742536059cc": "LUKS",
	"8da63339-0007-60c0-c436-083ac8230908": "Linux reserved",
	"bc13c2ff-59e6-4262-a352-b275fd6f7172": "Linux /boot",
	"4f68bce3-e8cd-4db1-96e7-fbcaf984b709": "Linux root",
	"b921b045-1df0-41c3-af44-4c6f280d3fae": "Linux root",
	"8484680c-9521-48c6-9c11-b0720656f69e": "Linux /usr",
	"b0e01050-ee5f-4390-949a-9101b17104e9": "Linux /usr",
	"2c7357ed-ebd2-46d9-aec1-23d437ec2bf5": "Linux verity",
	"df3300ce-d69f-4c92-978c-9bfb0f38d820": "Linux verity",
	"933ac7e1-2eb4-4f13-b844-0e14e2aef915": "Linux /home",
	"3b8f8425-20e0-4f3b-907f-1a25a76f98e8": "Linux /srv",
	"4d21b016-b534-45c2-a9fb-5c16e091fd2d": "Linux /var",
	"ebd0a0a2-b9e5-4433-87c0-68b6b72699c7": "basic data",
	"e3c9e316-0b5c-4db8-817d-f92df00215ae": "Microsoft reserved",
	"de94bba4-06d1-4d40-a16a-bfd50179d6ac": "Windows recovery",
	"af9b60a0-1431-4f62-bc68-3311714a69ad": "Windows dynamic disk",
	"e75caf8f-f680-4cee-afa3-b001e56efc2d": "Storage Spaces",
	"516e7cb6-6ecf-11d6-8ff8-00022d09712b": "FreeBSD UFS",
	"516e7cba-6ecf-11d6-8ff8-00022d09712b": "FreeBSD ZFS",
	"6a898cc3-1dd2-11b2-99a6-080020736631": "ZFS",
	"6a945a3b-1dd2-11b2-99a6-080020736631": "ZFS reserved",
	"aa31e02a-400f-11db-9590-000c2911d1b8": "VMware VMFS",
	"9d275380-40ad-11db-bf97-000c2911d1b8": "VMware diagnostics",
	"9198effc-31c0-11db-8f78-000c2911d1b8": "VMware reserved",
	"45b0969e-9b03-4f30-b4c6-b4b80ceff106": "Ceph journal",
	"4fbd7e29-9d25-41b8-afd0-062c0ceff05d": "Ceph OSD",
	"5dfbf5f4-2848-4bac-aa5e-0d9a20b745a6": "Flatcar /usr",
}

// kinds are the types of an MBR, which nobody keeps a standard of; these are the kernel's
// (block/partitions/msdos.c) and those of util-linux's fdisk.
var kinds = map[byte]string{
	0x01: "FAT12", 0x04: "FAT16", 0x06: "FAT16", 0x0e: "FAT16", 0x0b: "FAT32", 0x0c: "FAT32",
	0x05: hardware.TypeExtended, 0x0f: hardware.TypeExtended, 0x85: hardware.TypeExtended,
	0x07: "NTFS or exFAT", 0x27: "Windows recovery", 0x42: "Windows dynamic disk",
	0x82: "Linux swap", 0x83: "Linux", 0x8e: "Linux LVM", 0xfd: "Linux RAID",
	0xa5: "FreeBSD", 0xa6: "OpenBSD", 0xa9: "NetBSD", 0xbf: "Solaris",
	0xef: "EFI system", 0xfb: "VMware VMFS", 0xfc: "VMware swap", 0x41: "PowerPC PReP boot",
}
