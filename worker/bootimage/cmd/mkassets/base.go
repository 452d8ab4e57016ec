package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// metaPackage depends on the newest signed kernel.
const metaPackage = "linux-image-amd64"

// source is a boot file that is taken from a package as it is. An empty pkg
// means the kernel, whose file name ends in its version.
type source struct{ file, pkg, path, licence string }

// sources has a licence where the package's copyright file speaks only of the
// packaging: the signed GRUB is GRUB 2.
func sources() []source {
	return []source{
		{file: "undionly.kpxe", pkg: "ipxe", path: "usr/lib/ipxe/undionly.kpxe"},
		{file: "snponly.efi", pkg: "ipxe", path: "usr/lib/ipxe/snponly.efi"},
		{file: "ipxe.efi", pkg: "ipxe", path: "boot/ipxe.efi"},
		{file: "shimx64.efi", pkg: "shim-signed", path: "usr/lib/shim/shimx64.efi.signed"},
		{file: "grubx64.efi", pkg: "grub-efi-amd64-signed", path: "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", licence: "GPL-3+"},
		{file: "vmlinuz-amd64", path: "boot/vmlinuz-"},
	}
}

// origin is an entry of provenance.json; package ipxe reads it.
type origin struct {
	File    string `json:"file"`
	Package string `json:"package"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	Licence string `json:"licence"`
	Source  string `json:"source"`
}

// base is a folder with everything that does not depend on the worker.
type base struct {
	dir     string
	origins []origin // of the files in dir, then of the modules part
}

// modulesPart is the first archive of the initramfs, in the base folder.
const modulesPart = "modules.cpio.zst"

// makeBase returns the base for the packages that apt offers now.
func makeBase(ctx context.Context, cache string, t tools, out io.Writer) (base, error) {
	packages, kernel, err := resolve(ctx, t)
	if err != nil {
		return base{}, err
	}
	inputs := []string{"kernel " + kernel.version}
	for _, p := range packages {
		inputs = append(inputs, p["package"]+" "+p["sha256"])
	}
	slices.Sort(inputs)
	k, err := key(inputs...)
	if err != nil {
		return base{}, err
	}
	dir, err := cached(filepath.Join(cache, "base"), k, 3, func(dir string) error {
		roots, err := unpack(ctx, cache, packages, t, out)
		defer func() {
			for _, root := range roots {
				os.RemoveAll(root)
			}
		}()
		if err != nil {
			return err
		}
		return fill(ctx, dir, packages, roots, kernel, t, out)
	})
	if err != nil {
		return base{}, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "origins.json"))
	if err != nil {
		return base{}, err
	}
	b := base{dir: dir}
	return b, json.Unmarshal(text, &b.origins)
}

type kernelPackage struct{ pkg, version string }

// resolve asks apt for the packages that the boot files come from.
func resolve(ctx context.Context, t tools) (map[string]bootimage.Stanza, kernelPackage, error) {
	names := []string{metaPackage}
	for _, s := range sources() {
		if s.pkg != "" {
			names = append(names, s.pkg)
		}
	}
	stanzas, err := t.show(ctx, names...)
	if err != nil {
		return nil, kernelPackage{}, err
	}
	var k kernelPackage
	for _, s := range stanzas {
		if s["package"] == metaPackage {
			if k.pkg, k.version, err = bootimage.KernelPackage(s); err != nil {
				return nil, k, err
			}
		}
	}
	if k.pkg == "" {
		return nil, k, fmt.Errorf("apt knows no package %s (Debian 12 amd64 is needed; run `apt-get update` as root)", metaPackage)
	}
	kernel, err := t.show(ctx, k.pkg)
	if err != nil {
		return nil, k, err
	}
	packages := map[string]bootimage.Stanza{}
	for _, s := range append(stanzas, kernel...) {
		if s["package"] != metaPackage {
			packages[s["package"]] = s
		}
	}
	for _, name := range append(names[1:], k.pkg) {
		if packages[name]["sha256"] == "" {
			return nil, k, fmt.Errorf("apt offers no download of package %s (run `apt-get update` as root)", name)
		}
	}
	return packages, k, nil
}

// fill makes the base folder from the unpacked packages.
func fill(ctx context.Context, dir string, packages map[string]bootimage.Stanza, roots map[string]string,
	kernel kernelPackage, t tools, out io.Writer,
) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var origins []origin
	for _, s := range sources() {
		if s.pkg == "" {
			s.pkg, s.path = kernel.pkg, s.path+kernel.version
		}
		root := roots[s.pkg]
		if err := copyFile(filepath.Join(dir, s.file), filepath.Join(root, s.path)); err != nil {
			return fmt.Errorf("package %s: %w", s.pkg, err)
		}
		o, err := describe(dir, s, packages[s.pkg], root)
		if err != nil {
			return err
		}
		origins = append(origins, o)
	}
	root := roots[kernel.pkg]
	if err := t.depmod(ctx, root, kernel.version); err != nil {
		return err
	}
	modules := os.DirFS(filepath.Join(root, "lib/modules", kernel.version))
	entries, err := bootimage.ModuleEntries(modules, kernel.version, bootimage.ServerModules())
	if err != nil {
		return fmt.Errorf("package %s: %w", kernel.pkg, err)
	}
	fmt.Fprintf(out, "compressing %d kernel modules (about a minute, once for each kernel)\n", countModules(entries))
	if err := compress(ctx, filepath.Join(dir, modulesPart), 19, func(w io.Writer) error {
		return bootimage.WriteCPIO(w, entries)
	}); err != nil {
		return err
	}
	// The kernel is the last of the sources.
	last := origins[len(origins)-1]
	last.File = modulesPart
	origins = append(origins, last)
	text, err := json.Marshal(origins)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "origins.json"), text, 0o644)
}

func countModules(entries []bootimage.Entry) (n int) {
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".ko") {
			n++
		}
	}
	return n
}

func describe(dir string, s source, pkg bootimage.Stanza, root string) (origin, error) {
	o := origin{File: s.file, Package: s.pkg, Version: pkg["version"], Licence: s.licence, Source: "debian"}
	if o.Licence == "" {
		text, err := os.ReadFile(filepath.Join(root, "usr/share/doc", s.pkg, "copyright"))
		if err != nil {
			return o, err
		}
		o.Licence = bootimage.Licence(string(text))
	}
	if o.Licence == "" {
		return o, fmt.Errorf("package %s: its copyright file names no licence for `Files: *`", s.pkg)
	}
	var err error
	o.SHA256, err = checksum(filepath.Join(dir, s.file))
	return o, err
}
