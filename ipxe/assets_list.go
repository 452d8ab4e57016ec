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
			l.Size, err = a.embeddedSize(p)
			if errors.Is(err, fs.ErrNotExist) {
				continue // named in provenance.json, and not built in
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
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

// embeddedSize is how many bytes an embedded file is served with. One that is embedded
// packed is not unpacked for that: most appliances never serve the kernel for arm64.
func (a *Assets) embeddedSize(p Provenance) (int64, error) {
	if !isAssetName(p.File) {
		return 0, fs.ErrNotExist
	}
	info, err := fs.Stat(a.builtin, p.File)
	if err == nil {
		return info.Size(), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fs.Stat(a.builtin, p.File+packedSuffix)
	}
	return p.Size, err
}
