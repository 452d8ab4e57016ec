package bootimage

import (
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// ModuleEntries returns the selected modules of a kernel and the depmod files
// for them. fsys is /lib/modules/VERSION of the unpacked kernel package, after
// depmod ran on it. It returns the errors of [ReadTree] and [Selection.Select],
// and one for a module whose file is absent.
func ModuleEntries(fsys fs.FS, version string, s Selection) ([]Entry, error) {
	tree, err := ReadTree(fsys)
	if err != nil {
		return nil, err
	}
	keep, err := s.Select(tree)
	if err != nil {
		return nil, err
	}
	dir := path.Join("lib/modules", version)
	var list []Entry
	for _, file := range slices.Sorted(maps.Keys(keep)) {
		info, err := fs.Stat(fsys, file)
		if err != nil {
			return nil, err
		}
		list = append(list, Entry{
			Name: path.Join(dir, file), Mode: 0o644, Size: info.Size(),
			Open: func() (io.ReadCloser, error) { return fsys.Open(file) },
		})
	}
	for name, data := range tree.Filter(keep).Files() {
		list = append(list, Bytes(path.Join(dir, name), 0o644, data))
	}
	return list, nil
}

// WorkerEntries returns the worker as /init, the folders it mounts on, and
// /dev/console, which the kernel opens for it before anything is mounted.
func WorkerEntries(worker []byte) []Entry {
	list := []Entry{
		Bytes("init", 0o755, worker),
		{Name: "dev/console", Mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, Major: 5, Minor: 1},
	}
	for _, dir := range []string{"dev", "etc", "mnt", "proc", "run", "sys", "tmp"} {
		list = append(list, Dir(dir))
	}
	return list
}
