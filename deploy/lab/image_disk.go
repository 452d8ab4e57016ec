package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sector = 512
	mib    = 1 << 20
)

// Layout of the image in MiB: bios_grub, ESP, root. The root is last so that it
// can grow; the last MiB holds the backup partition table.
const (
	biosStart = 1
	espStart  = 2
	espSize   = 64
	rootStart = espStart + espSize
)

// biosBoot is GRUB for the BIOS: boot.img for the first sector of the disk, and
// core.img for the bios_grub partition.
type biosBoot struct{ boot, core []byte }

// makeImageDisk writes the partitioned disk. Nothing is mounted: mkfs fills the
// root from a directory, mtools the ESP.
func makeImageDisk(ctx context.Context, work, root, disk string, boot *biosBoot) error {
	esp, fs := filepath.Join(work, "esp"), filepath.Join(work, "fs")
	if err := makeESP(ctx, esp, filepath.Join(root, "boot/efi")); err != nil {
		return err
	}
	used, err := treeSize(root)
	if err != nil {
		return err
	}
	// Room for inodes, the journal and the first start on a disk of just this size.
	rootSize := (used + used/8 + 160*mib) / mib
	// GRUB 2.06 does not read file systems with metadata_csum_seed or orphan_file.
	if err := run(ctx, "mkfs.ext4", "-q", "-F", "-L", "root", "-U", rootUUID, "-d", root,
		"-O", "^metadata_csum_seed,^orphan_file", fs, fmt.Sprintf("%dM", rootSize)); err != nil {
		return err
	}
	f, err := os.OpenFile(disk, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate((rootStart + rootSize + 1) * mib); err != nil {
		return err
	}
	if err := partition(ctx, disk, rootSize); err != nil {
		return err
	}
	for path, at := range map[string]int{esp: espStart, fs: rootStart} {
		if err := run(ctx, "dd", "status=none", "bs=1M", "conv=notrunc,sparse", fmt.Sprintf("seek=%d", at), "if="+path, "of="+disk); err != nil {
			return err
		}
	}
	if boot == nil { // their partition stays empty: one layout is enough
		return nil
	}
	return writeBIOSBoot(f, *boot)
}

func makeESP(ctx context.Context, path, from string) error {
	if err := run(ctx, "mkfs.vfat", "-C", "-F", "32", "-s", "1", "-n", "ESP", "-i", espID, path, fmt.Sprint(espSize*1024)); err != nil {
		return err
	}
	if err := run(ctx, "mcopy", "-s", "-i", path, filepath.Join(from, "EFI"), "::"); err != nil {
		return err
	}
	// The directory is a mount point in the root.
	return os.RemoveAll(filepath.Join(from, "EFI"))
}

// partition writes the GPT. The types are those of the Discoverable Partitions
// Specification, and GRUB's own for bios_grub.
func partition(ctx context.Context, disk string, rootSize int64) error {
	table := fmt.Sprintf(`label: gpt
label-id: 6d9f8a52-0f8e-4c57-9a39-2a1f0c1be200
start=%dMiB, size=1MiB, type=21686148-6449-6E6F-744E-656564454649, name=bios
start=%dMiB, size=%dMiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name=esp
start=%dMiB, size=%dMiB, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name=root
`, biosStart, espStart, espSize, rootStart, rootSize)
	cmd := exec.CommandContext(ctx, "sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk)
	cmd.Stdin = strings.NewReader(table)
	return runTail(cmd)
}

// writeBIOSBoot does what grub-bios-setup does, which wants a real disk: it
// writes core.img into the bios_grub partition and points boot.img at it.
// Offsets: GRUB's include/grub/i386/pc/boot.h.
func writeBIOSBoot(f *os.File, b biosBoot) error {
	const (
		driveCheck   = 0x66        // a jump that only BIOSes without bugs need
		kernelSector = 0x5c        // where core.img begins, 8 bytes
		bootCode     = 440         // the partition table's bytes follow
		blockList    = sector - 12 // at the end of core.img's first sector
	)
	if len(b.boot) < bootCode || len(b.core) < 2*sector || len(b.core) > mib {
		return errors.New("GRUB's boot.img or core.img has a strange size")
	}
	boot, core := append([]byte(nil), b.boot[:bootCode]...), append([]byte(nil), b.core...)
	first := uint64(biosStart * mib / sector)
	binary.LittleEndian.PutUint64(boot[kernelSector:], first)
	boot[driveCheck], boot[driveCheck+1] = 0x90, 0x90
	binary.LittleEndian.PutUint64(core[blockList:], first+1)
	rest := (len(core) + sector - 1) / sector
	binary.LittleEndian.PutUint16(core[blockList+8:], uint16(rest-1))
	if _, err := f.WriteAt(boot, 0); err != nil {
		return err
	}
	_, err := f.WriteAt(core, biosStart*mib)
	return err
}
