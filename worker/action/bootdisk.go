package action

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rackstrap/rackstrap/worker/action/efiboot"
	"github.com/rackstrap/rackstrap/worker/action/partition"
)

// bootDescription is the name of our boot option in the firmware's menu, and how
// it is found again.
const bootDescription = "Rackstrap disk"

// espType is the GPT type of an EFI system partition,
// c12a7328-f81f-11d2-ba4b-00a0c93ec93b (UEFI 2.10, table 5-7).
var espType = [16]byte{0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b}

// loaders are the names that firmware itself looks for on a disk (UEFI 2.10,
// section 3.5.1.1), by architecture.
var loaders = map[string]string{
	"amd64": `\EFI\BOOT\BOOTX64.EFI`,
	"arm64": `\EFI\BOOT\BOOTAA64.EFI`,
}

// bootDisk makes a UEFI machine boot the installed disk at the next start, instead
// of the network that it asks first. It returns what to add to the message about
// the restart: nothing on a BIOS machine.
func (h *history) bootDisk(ctx context.Context, env Env) string {
	if _, err := os.Stat(env.Sys.efi()); err != nil {
		return ""
	}
	esp, name, err := h.setBootNext(ctx, env)
	if err != nil {
		env.Log.Warn("the firmware was not told to boot the disk next; it follows its own boot order", "error", err)
		return fmt.Sprintf("; the firmware follows its own boot order: %v", err)
	}
	env.Log.Info("the firmware boots the disk next", "partition", esp.info.path, "option", name)
	return fmt.Sprintf("; the firmware boots %s next (%s)", esp.info.path, name)
}

// setBootNext returns the partition it chose and the name of the boot option.
func (h *history) setBootNext(ctx context.Context, env Env) (systemPartition, string, error) {
	file := loaders[runtime.GOARCH]
	if file == "" {
		return systemPartition{}, "", fmt.Errorf("no name of a boot loader is known for %s", runtime.GOARCH)
	}
	all, err := disks(env.Sys)
	if err != nil {
		return systemPartition{}, "", err
	}
	esp, err := findLoader(ctx, env, h.among(all), file)
	if err != nil {
		return esp, "", err
	}
	if err := loadFilesystem(env, "efivarfs"); err != nil {
		return esp, "", err
	}
	variables, err := efiboot.Open(filepath.Join(env.Sys.efi(), "efivars"))
	if err != nil {
		return esp, "", err
	}
	name, err := variables.SetNext(efiboot.Disk(bootDescription, esp.boot, file))
	return esp, name, err
}

// systemPartition is an EFI system partition.
type systemPartition struct {
	info partInfo
	boot efiboot.Partition
}

// findLoader returns the one system partition that has file. A disk that cannot
// be read is no candidate, but its error is told when there is none.
func findLoader(ctx context.Context, env Env, among []disk, file string) (systemPartition, error) {
	var found []systemPartition
	var problems []error
	for _, d := range among {
		esps, err := systemPartitions(d)
		if err != nil && !errors.Is(err, partition.ErrNone) {
			problems = append(problems, fmt.Errorf("%s: %w", d.path, err))
		}
		for _, esp := range esps {
			if ctx.Err() != nil {
				return systemPartition{}, context.Cause(ctx)
			}
			has, err := hasFile(env, d, esp.info, strings.ReplaceAll(file, `\`, "/"))
			if err != nil {
				problems = append(problems, err)
			}
			if has {
				found = append(found, esp)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return systemPartition{}, errors.Join(append([]error{
			fmt.Errorf("no EFI system partition with %s on %s", file, list(among)),
		}, problems...)...)
	}
	return systemPartition{}, fmt.Errorf("%s and %s both have %s, refusing to guess", found[0].info.path, found[1].info.path, file)
}

// systemPartitions lists those of a disk with a GPT.
func systemPartitions(d disk) ([]systemPartition, error) {
	dev, err := openReadOnly(d.path)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	table, err := partition.Read(dev.layout())
	if err != nil {
		return nil, err
	}
	infos, err := partitions(d)
	if err != nil {
		return nil, err
	}
	var out []systemPartition
	for _, e := range table.Entries {
		for _, info := range infos {
			if e.Type != espType || info.number != e.Number {
				continue
			}
			out = append(out, systemPartition{info, efiboot.Partition{
				Number: uint32(e.Number), GUID: e.GUID,
				Start: uint64(e.Start) / uint64(dev.sector), Size: uint64(e.End-e.Start) / uint64(dev.sector),
			}})
		}
	}
	return out, nil
}

// hasFile looks into the file system of a partition. On FAT case does not matter.
func hasFile(env Env, d disk, p partInfo, name string) (bool, error) {
	fs, err := identifyPath(p.path)
	if err != nil {
		return false, err
	}
	if fs.kind == "" {
		return false, fmt.Errorf("%s has no file system that can be mounted", p.path)
	}
	t, err := mountTarget(env, d, p, fs, "", true)
	if err != nil {
		return false, err
	}
	return t.exists(name), t.Close()
}
