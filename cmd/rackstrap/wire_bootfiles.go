package main

import (
	"fmt"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/ipxe"
)

// bootFileList is what `rackstrap boot-file list` shows. Files that cannot be read are
// in the log.
func (a *appliance) bootFileList() ([]api.BootFile, error) {
	files, err := a.assets.List()
	if err != nil {
		a.log.Warn("not every boot file can be read", "err", err)
	}
	out := make([]api.BootFile, len(files))
	for i, f := range files {
		out[i] = api.BootFile{
			Name: f.File, Bytes: f.Size, SHA256: f.SHA256, Origin: f.Source, Package: f.Package, Version: f.Version, Licence: f.Licence,
			Path: f.Path, Modified: f.Modified, Replaces: replaced(f),
		}
	}
	return out, nil
}

// replaced names the file that an operator's file hides.
func replaced(f ipxe.Listed) string {
	if f.Replaces == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", f.Replaces.Package, f.Replaces.Version)
}

// sayBootFiles logs what the operator's boot files are, once at the start.
func (a *appliance) sayBootFiles() {
	files, err := a.assets.List()
	if err != nil {
		a.log.Warn("not every boot file can be read", "err", err)
	}
	for _, f := range files {
		switch {
		case f.Source != ipxe.SourceOperator:
		case f.Replaces != nil:
			a.log.Info("a boot file of yours replaces ours", "file", f.File, "path", f.Path, "sha256", f.SHA256, "ours", replaced(f))
		default:
			a.log.Info("a boot file of yours is served", "file", f.File, "path", f.Path, "sha256", f.SHA256)
		}
	}
}
