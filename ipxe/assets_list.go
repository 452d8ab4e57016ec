package ipxe

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// Listed is one boot file that is served, or one of the operator's parts of an
// initramfs.
type Listed struct {
	Provenance
	Size int64
	// Path and Modified are the operator's file's; zero where it is embedded.
	Path     string
	Modified time.Time
	// Replaces is what is embedded by that name; nil: nothing.
	Replaces *Provenance
}

// List describes all boot files that are served, those of [Assets.Provenance]. Its
// errors are the same; the list then holds the rest.
func (a *Assets) List() ([]Listed, error) {
	all, err := a.Provenance()
	errs := []error{err}
	built, err := a.builtinProvenance()
	errs = append(errs, err)
	embedded := map[string]*Provenance{}
	for i := range built {
		embedded[built[i].File] = &built[i]
	}
	var out []Listed
	for _, p := range all {
		l := Listed{Provenance: p}
		if p.Source != SourceOperator {
			f, err := a.base(p.File)
			if errors.Is(err, fs.ErrNotExist) {
				continue // named in provenance.json, and not built in
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			l.Size = f[0].size
			errs = append(errs, closeParts(f))
			out = append(out, l)
			continue
		}
		dir, name := a.boot, p.File
		if part, ok := strings.CutPrefix(p.File, "initramfs/"); ok && partMagic(part) != nil {
			dir, name = a.parts, part
		} else {
			l.Replaces = embedded[p.File]
		}
		f, err := openDropIn(dir, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.Path, l.Size, l.Modified = filepath.Join(dir, filepath.FromSlash(name)), f.size, f.modified
		errs = append(errs, f.Close())
		out = append(out, l)
	}
	return out, errors.Join(errs...)
}
