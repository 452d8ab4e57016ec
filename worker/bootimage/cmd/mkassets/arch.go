package main

import (
	"debug/elf"
	"fmt"
	"strings"
)

// arch is an architecture and the boot files of its machines.
type arch struct {
	name    string // as Debian and Go name it
	machine elf.Machine
	sources []source
	// wanted and limit are sizes in bytes of kernel and initramfs together.
	wanted, limit int64
}

// source is a boot file. An empty pkg means the kernel, whose file name ends in its
// version. licence is set where the package's copyright file speaks only of the
// packaging: the signed GRUB is GRUB 2.
type source struct {
	file, pkg, path, licence string
	// pack: the file is kept compressed, as file.zst.
	pack bool
}

// arches are what boot files are made for, in the order of provenance.json.
func arches() []arch {
	return []arch{
		{
			name: "amd64", machine: elf.EM_X86_64,
			// Some network cards' iPXE drivers hang on large downloads.
			wanted: 30_000_000, limit: 40_000_000,
			sources: []source{
				{file: "undionly.kpxe", pkg: "ipxe", path: "usr/lib/ipxe/undionly.kpxe"},
				{file: "snponly.efi", pkg: "ipxe", path: "usr/lib/ipxe/snponly.efi"},
				{file: "ipxe.efi", pkg: "ipxe", path: "boot/ipxe.efi"},
				{file: "shimx64.efi", pkg: "shim-signed", path: "usr/lib/shim/shimx64.efi.signed"},
				{file: "grubx64.efi", pkg: "grub-efi-amd64-signed", path: "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", licence: "GPL-3+"},
				{file: "vmlinuz-amd64", path: "boot/vmlinuz-"},
			},
		},
		{
			name: "arm64", machine: elf.EM_AARCH64,
			// The kernel is not compressed, and its signature covers it as it is: 33 MB that
			// travel whole, but for which a seventh of the room is enough here.
			wanted: 55_000_000, limit: 65_000_000,
			sources: []source{
				{file: "shimaa64.efi", pkg: "shim-signed", path: "usr/lib/shim/shimaa64.efi.signed"},
				{file: "grubaa64.efi", pkg: "grub-efi-arm64-signed", path: "usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed", licence: "GPL-3+"},
				{file: "vmlinuz-arm64", path: "boot/vmlinuz-", pack: true},
			},
		},
	}
}

// chosen returns the architectures of a list of names.
func chosen(list string) (out []arch, err error) {
	known := map[string]arch{}
	for _, a := range arches() {
		known[a.name] = a
	}
	for name := range strings.SplitSeq(list, ",") {
		a, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("-arch %q is not known (amd64, arm64 or both: amd64,arm64)", name)
		}
		out = append(out, a)
		delete(known, name)
	}
	return out, nil
}

// meta is the package that depends on the newest signed kernel.
func (a arch) meta() string { return "linux-image-" + a.name }

func (a arch) kernelFile() string { return "vmlinuz-" + a.name }

func (a arch) initramfsFile() string { return "initramfs-" + a.name }
