package ipxe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Provenance says where one boot file came from.
type Provenance struct {
	File    string `json:"file"`
	Package string `json:"package,omitempty"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256"`            // hexadecimal, of the file as it is served
	Size    int64  `json:"size"`              // bytes, as it is served; of an operator's file [Assets.List] knows it
	Licence string `json:"licence,omitempty"` // short name, from the package's copyright file
	Source  string `json:"source"`            // one of the Source constants
}

// The values of Provenance.Source.
const (
	SourceDebian   = "debian"   // unchanged from the Debian package
	SourceBuilt    = "built"    // made by `make assets`
	SourceOperator = "operator" // from a drop-in folder
)

// Provenance lists the embedded boot files that are served, then the
// operator's: boot files by name and initramfs parts as "initramfs/NAME". An
// embedded file that the operator replaced is left out. It returns an error
// when provenance.json is damaged or a drop-in file cannot be read; the list
// then holds the rest.
func (a *Assets) Provenance() ([]Provenance, error) {
	var errs []error
	own, err := a.operatorFiles()
	errs = append(errs, err)
	replaced := map[string]bool{}
	for _, p := range own {
		replaced[p.File] = true
	}
	var list []Provenance
	built, err := a.builtinProvenance()
	errs = append(errs, err)
	for _, p := range built {
		if !replaced[p.File] {
			list = append(list, p)
		}
	}
	return append(list, own...), errors.Join(errs...)
}

func (a *Assets) builtinProvenance() ([]Provenance, error) {
	data, err := fs.ReadFile(a.builtin, "provenance.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Provenance
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("embedded provenance.json: %w (run `make assets` and build again)", err)
	}
	return list, nil
}

// operatorFiles describes every file of the drop-in folders that is served.
func (a *Assets) operatorFiles() (list []Provenance, err error) {
	var errs []error
	add := func(dir, name, as string) {
		p, err := openDropIn(dir, name)
		if err != nil {
			errs = append(errs, err)
			return
		}
		f := newAsset(a, name, []part{p})
		sum, err := f.SHA256()
		errs = append(errs, err, f.Close())
		if err == nil {
			list = append(list, Provenance{File: as, SHA256: sum, Source: SourceOperator})
		}
	}
	names, err := bootNames(a.boot)
	errs = append(errs, err)
	for _, name := range names {
		add(a.boot, name, name)
	}
	names, err = partNames(a.parts)
	errs = append(errs, err)
	for _, name := range names {
		add(a.parts, name, "initramfs/"+name)
	}
	return list, errors.Join(errs...)
}
