package bootimage

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Tree is the text that depmod(8) and the kernel build leave in
// /lib/modules/VERSION.
type Tree struct {
	Modules []Module        // in the order of modules.dep
	Alias   []Alias         // modules.alias
	Softdep []Softdep       // modules.softdep
	Order   []string        // modules.order: paths in the order of linking
	Builtin map[string]bool // names of the modules that are part of the kernel
	// BuiltinText and BuiltinInfo are modules.builtin and
	// modules.builtin.modinfo as they are.
	BuiltinText, BuiltinInfo []byte
}

// Module is a line of modules.dep: a file and those to load before it, as
// paths relative to /lib/modules/VERSION.
type Module struct {
	Path string
	Deps []string
}

// Name returns the module's name as the kernel knows it.
func (m Module) Name() string { return ModuleName(m.Path) }

// Alias is a line of modules.alias: a shell pattern and a module's name.
type Alias struct{ Pattern, Name string }

// Softdep is a line of modules.softdep: names or aliases to load before and
// after a module, where they exist.
type Softdep struct {
	Name      string
	Pre, Post []string
}

// ModuleName returns the name of the module in a file such as
// "kernel/drivers/scsi/sd-mod.ko". Dashes become underscores, as the kernel
// does.
func ModuleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// ReadTree reads the depmod files at the root of fsys. It returns an error that
// names the file when one is absent or has a line that it should not have.
func ReadTree(fsys fs.FS) (*Tree, error) {
	t := &Tree{Builtin: map[string]bool{}}
	for _, f := range []struct {
		name string
		line func(words []string) bool
	}{
		{"modules.dep", t.depLine},
		{"modules.alias", t.aliasLine},
		{"modules.softdep", t.softdepLine},
		{"modules.order", func(w []string) bool { t.Order = append(t.Order, w[0]); return len(w) == 1 }},
		{"modules.builtin", func(w []string) bool { t.Builtin[ModuleName(w[0])] = true; return len(w) == 1 }},
	} {
		if err := eachLine(fsys, f.name, f.line); err != nil {
			return nil, err
		}
	}
	var err error
	if t.BuiltinText, err = fs.ReadFile(fsys, "modules.builtin"); err != nil {
		return nil, err
	}
	if t.BuiltinInfo, err = fs.ReadFile(fsys, "modules.builtin.modinfo"); err != nil {
		return nil, err
	}
	return t, nil
}

// eachLine calls line with the words of each line that is neither empty nor a
// comment.
func eachLine(fsys fs.FS, name string, line func(words []string) bool) error {
	f, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("%w (run depmod -b on the unpacked kernel package)", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		words := strings.Fields(s.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if !line(words) {
			return fmt.Errorf("%s:%d: cannot read %q", name, n, s.Text())
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (t *Tree) depLine(w []string) bool {
	file, ok := strings.CutSuffix(w[0], ":")
	t.Modules = append(t.Modules, Module{Path: file, Deps: w[1:]})
	return ok
}

func (t *Tree) aliasLine(w []string) bool {
	if len(w) != 3 || w[0] != "alias" {
		return false
	}
	t.Alias = append(t.Alias, Alias{Pattern: w[1], Name: ModuleName(w[2])})
	return true
}

// softdepLine reads "softdep NAME [pre: A B] [post: C]". Words before the
// first of the two are ignored, as kmod does (libkmod-config.c).
func (t *Tree) softdepLine(w []string) bool {
	if len(w) < 2 || w[0] != "softdep" {
		return false
	}
	s := Softdep{Name: ModuleName(w[1])}
	var list *[]string
	for _, word := range w[2:] {
		switch {
		case word == "pre:":
			list = &s.Pre
		case word == "post:":
			list = &s.Post
		case list != nil:
			*list = append(*list, word)
		}
	}
	if s.Pre != nil || s.Post != nil {
		t.Softdep = append(t.Softdep, s)
	}
	return true
}

// Filter returns the tree with only the modules whose paths are in keep.
func (t *Tree) Filter(keep map[string]bool) *Tree {
	out := &Tree{Builtin: t.Builtin, BuiltinText: t.BuiltinText, BuiltinInfo: t.BuiltinInfo}
	names := map[string]bool{}
	for _, m := range t.Modules {
		if keep[m.Path] {
			out.Modules = append(out.Modules, m)
			names[m.Name()] = true
		}
	}
	for _, a := range t.Alias {
		if names[a.Name] {
			out.Alias = append(out.Alias, a)
		}
	}
	for _, s := range t.Softdep {
		if names[s.Name] {
			out.Softdep = append(out.Softdep, s)
		}
	}
	for _, o := range t.Order {
		if keep[o] {
			out.Order = append(out.Order, o)
		}
	}
	return out
}

// Files returns the tree as depmod's text files, by name.
func (t *Tree) Files() map[string][]byte {
	var dep, alias, softdep, order strings.Builder
	for _, m := range t.Modules {
		dep.WriteString(m.Path + ":" + spaced(m.Deps) + "\n")
	}
	for _, a := range t.Alias {
		alias.WriteString("alias " + a.Pattern + " " + a.Name + "\n")
	}
	for _, s := range t.Softdep {
		softdep.WriteString("softdep " + s.Name)
		if len(s.Pre) > 0 {
			softdep.WriteString(" pre:" + spaced(s.Pre))
		}
		if len(s.Post) > 0 {
			softdep.WriteString(" post:" + spaced(s.Post))
		}
		softdep.WriteString("\n")
	}
	for _, o := range t.Order {
		order.WriteString(o + "\n")
	}
	return map[string][]byte{
		"modules.dep":             []byte(dep.String()),
		"modules.alias":           []byte(alias.String()),
		"modules.softdep":         []byte(softdep.String()),
		"modules.order":           []byte(order.String()),
		"modules.builtin":         t.BuiltinText,
		"modules.builtin.modinfo": t.BuiltinInfo,
	}
}

func spaced(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ")
}
