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

// origin is an entry of provenance.json; package ipxe reads it.
type origin struct {
	File    string `json:"file"`
	Package string `json:"package"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	Licence string `json:"licence"`
	Source  string `json:"source"`
	// Packed: the file is here as File.zst, compressed; SHA256 is that of File.
	Packed bool `json:"packed,omitempty"`
}

// packed is the ending of a compressed file.
const packed = ".zst"

// stored is the name of the file that holds File.
func (o origin) stored() string {
	if o.Packed {
		return o.File + packed
	}
	return o.File
}

// base is a folder with everything of an architecture that does not depend on the
// worker.
type base struct {
	arch    arch
	dir     string
	origins []origin // of the files in dir, then of the modules part
}

// modulesPart is the first archive of the initramfs, in the base folder.
const modulesPart = "modules.cpio.zst"

// makeBase returns the base for the packages that apt offers now.
func makeBase(ctx context.Context, cache string, a arch, t tools, out io.Writer) (base, error) {
	packages, kernel, err := resolve(ctx, a, t)
	if err != nil {
		return base{}, err
	}
	inputs := []string{"arch " + a.name, "kernel " + kernel.version}
	for _, p := range packages {
		inputs = append(inputs, p["package"]+" "+p["sha256"])
	}
	slices.Sort(inputs)
	k, err := key(inputs...)
	if err != nil {
		return base{}, err
	}
	dir, err := cached(filepath.Join(cache, "base"), k, 6, func(dir string) error {
		roots, err := unpack(ctx, cache, packages, t, out)
		defer func() {
			for _, root := range roots {
				os.RemoveAll(root)
			}
		}()
		if err != nil {
			return err
		}
		return fill(ctx, dir, a, packages, roots, kernel, t, out)
	})
	if err != nil {
		return base{}, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "origins.json"))
	if err != nil {
		return base{}, err
	}
	b := base{arch: a, dir: dir}
	return b, json.Unmarshal(text, &b.origins)
}

type kernelPackage struct{ pkg, version string }

// resolve asks apt for the packages that the boot files come from.
func resolve(ctx context.Context, a arch, t tools) (map[string]bootimage.Stanza, kernelPackage, error) {
	names := []string{a.meta()}
	for _, s := range a.sources {
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
		if s["package"] == a.meta() {
			if k.pkg, k.version, err = bootimage.KernelPackage(s); err != nil {
				return nil, k, err
			}
		}
	}
	if k.pkg == "" {
		return nil, k, fmt.Errorf("apt knows no package %s (Debian 12 amd64 is needed; run `apt-get update` as root)", a.meta())
	}
	kernel, err := t.show(ctx, k.pkg)
	if err != nil {
		return nil, k, err
	}
	packages := map[string]bootimage.Stanza{}
	for _, s := range append(stanzas, kernel...) {
		if s["package"] != a.meta() {
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
func fill(ctx context.Context, dir string, a arch, packages map[string]bootimage.Stanza, roots map[string]string,
	kernel kernelPackage, t tools, out io.Writer,
) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var origins []origin
	for _, s := range a.sources {
		if s.pkg == "" {
			s.pkg, s.path = kernel.pkg, s.path+kernel.version
		}
		o, err := describe(s, packages[s.pkg], roots[s.pkg])
		if err != nil {
			return err
		}
		file, err := take(ctx, dir, s, roots[s.pkg])
		if err != nil {
			return fmt.Errorf("package %s: %w", s.pkg, err)
		}
		if err := o.measure(file); err != nil {
			return err
		}
		origins = append(origins, o)
	}
	root := roots[kernel.pkg]
	if err := t.depmod(ctx, root, kernel.version); err != nil {
		return err
	}
	modules := os.DirFS(filepath.Join(root, "lib/modules", kernel.version))
	entries, err := bootimage.ModuleEntries(modules, kernel.version, bootimage.ServerModules(a.name))
	if err != nil {
		return fmt.Errorf("package %s: %w", kernel.pkg, err)
	}
	fmt.Fprintf(out, "%s: compressing %d kernel modules (about a minute, once for each kernel)\n", a.name, countModules(entries))
	if err := compress(ctx, filepath.Join(dir, modulesPart), 19, initramfsWindow, func(w io.Writer) error {
		return bootimage.WriteCPIO(w, entries)
	}); err != nil {
		return err
	}
	// The kernel is the last of the sources.
	last := origins[len(origins)-1]
	last.File, last.Packed = modulesPart, false
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

// measure notes what the boot file is as machines get it.
func (o *origin) measure(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	o.Size = info.Size()
	o.SHA256, err = checksum(file)
	return err
}

// take puts a source from the root of its package into dir. It returns the path of
// the boot file as it is before it is packed.
func take(ctx context.Context, dir string, s source, root string) (string, error) {
	from, to := filepath.Join(root, s.path), filepath.Join(dir, s.file)
	if !s.pack {
		return to, copyFile(to, from)
	}
	return from, compress(ctx, to+packed, 19, packedWindow, func(w io.Writer) error { return copyTo(w, from) })
}

func describe(s source, pkg bootimage.Stanza, root string) (origin, error) {
	o := origin{File: s.file, Package: s.pkg, Version: pkg["version"], Licence: s.licence, Source: "debian", Packed: s.pack}
	if o.Licence != "" {
		return o, nil
	}
	text, err := os.ReadFile(filepath.Join(root, "usr/share/doc", s.pkg, "copyright"))
	if err != nil {
		return o, err
	}
	if o.Licence = bootimage.Licence(string(text)); o.Licence == "" {
		return o, fmt.Errorf("package %s: its copyright file names no licence for `Files: *`", s.pkg)
	}
	return o, nil
}
