package module

import (
	"io/fs"
	"path"
	"strings"
)

// Index is what the depmod files of one kernel say.
type Index struct {
	deps    map[string]dep
	builtin map[string]bool
	soft    map[string][]string
	// aliases are filed by the start of their literal part: a device's modalias is
	// compared with tens of patterns instead of thousands. Patterns with a shorter
	// literal part are filed by their bus.
	aliases map[string][]alias
}

type dep struct {
	path  string // relative to the folder of the kernel
	needs string // blank-separated paths, the nearest first
}

type alias struct{ pattern, module string }

// aliasKey is how many bytes of a pattern file it. 14 reach the end of the vendor
// of a PCI modalias (pci:v00008086d…) and of a USB one (usb:v0BDAp8152…).
const aliasKey = 14

// ReadIndex reads the depmod files in the root of fsys, which is a folder like
// /lib/modules/6.1.0-18-amd64. Only modules.dep must be there. Its error is that
// of opening or reading a file.
func ReadIndex(fsys fs.FS) (*Index, error) {
	x := &Index{deps: map[string]dep{}, builtin: map[string]bool{}, soft: map[string][]string{}, aliases: map[string][]alias{}}
	b, err := fs.ReadFile(fsys, "modules.dep")
	if err != nil {
		return nil, err
	}
	x.readDeps(string(b))
	for name, read := range map[string]func(string){
		"modules.builtin": x.readBuiltin,
		"modules.softdep": x.readSoft,
		"modules.alias":   x.readAliases,
	} {
		b, err := fs.ReadFile(fsys, name)
		switch {
		case err == nil:
			read(string(b))
		case !isNotExist(err):
			return nil, err
		}
	}
	return x, nil
}

// Name is the name of a module as the kernel knows it: of a path, without its
// suffixes, with _ for -.
func Name(s string) string {
	s = path.Base(s)
	s, _, _ = strings.Cut(s, ".ko")
	return strings.ReplaceAll(s, "-", "_")
}

// readDeps reads lines like `kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko`.
func (x *Index) readDeps(text string) {
	for line := range strings.Lines(text) {
		p, needs, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && p != "" {
			x.deps[Name(p)] = dep{path: p, needs: needs}
		}
	}
}

// readBuiltin reads lines like `kernel/drivers/tty/serial/8250/8250.ko`.
func (x *Index) readBuiltin(text string) {
	for line := range strings.Lines(text) {
		if p := strings.TrimSpace(line); p != "" {
			x.builtin[Name(p)] = true
		}
	}
}

// readSoft reads lines like `softdep libcrc32c pre: crc32c post: x`. What should
// come after a module is left out: nothing in an initramfs waits for it.
func (x *Index) readSoft(text string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "softdep" {
			continue
		}
		name, pre := Name(f[1]), false
		for _, w := range f[2:] {
			switch w {
			case "pre:":
				pre = true
			case "post:":
				pre = false
			default:
				if pre {
					x.soft[name] = append(x.soft[name], w)
				}
			}
		}
	}
}

// readAliases reads lines like `alias pci:v00001AF4d*sv*sd*bc*sc*i* virtio_pci`.
func (x *Index) readAliases(text string) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "alias ")
		if !ok {
			continue
		}
		pattern, mod, ok := strings.Cut(rest, " ")
		if !ok {
			continue
		}
		k := literal(pattern)
		if len(k) >= aliasKey {
			k = k[:aliasKey]
		} else {
			k = bus(k)
		}
		x.aliases[k] = append(x.aliases[k], alias{pattern, mod})
	}
}

// bus is what comes before the first colon, or nothing where there is none: such
// aliases (fs-ext4, crypto-crc32c) are filed under their own text if they are
// long, and else together.
func bus(s string) string {
	b, _, ok := strings.Cut(s, ":")
	if !ok {
		return ""
	}
	return b + ":"
}

// Match lists the modules that take a device with this modalias, or that an alias
// like fs-vfat names, each once.
func (x *Index) Match(modalias string) []string {
	var out []string
	seen := map[string]bool{}
	try := func(key string) {
		for _, a := range x.aliases[key] {
			if !seen[a.module] && match(a.pattern, modalias) {
				seen[a.module] = true
				out = append(out, a.module)
			}
		}
	}
	if len(modalias) >= aliasKey {
		try(modalias[:aliasKey])
	}
	b := bus(modalias)
	try(b)
	if b != "" {
		// A pattern like acpi*:PNP0C0F:* has no colon in its literal part.
		try("")
	}
	return out
}

// Resolve says what a name means: the module of that name, else those that an
// alias of that name stands for. Nothing where it is built into the kernel or not
// known.
func (x *Index) Resolve(name string) []string {
	n := Name(name)
	if _, ok := x.deps[n]; ok {
		return []string{n}
	}
	if x.builtin[n] {
		return nil
	}
	return x.Match(name)
}

// Files lists the files of a module and of all it needs, in the order in which
// they must be loaded, relative to the folder of the kernel. Nothing where the
// module is not there.
func (x *Index) Files(name string) []string {
	d, ok := x.deps[Name(name)]
	if !ok {
		return nil
	}
	needs := strings.Fields(d.needs)
	out := make([]string, 0, len(needs)+1)
	// depmod writes the nearest first; what it needs itself comes after it.
	for i := len(needs) - 1; i >= 0; i-- {
		out = append(out, needs[i])
	}
	return append(out, d.path)
}
