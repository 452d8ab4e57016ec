package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// provenance is the file that says where the others are from.
const provenance = "provenance.json"

// made is everything of one architecture, ready to be published.
type made struct {
	base
	initramfs []byte
}

// assemble puts the initramfs of an architecture together. It returns an error when
// kernel and initramfs are too large.
func assemble(b base, workerPart string, out io.Writer) (made, error) {
	modules, err := os.ReadFile(filepath.Join(b.dir, modulesPart))
	if err != nil {
		return made{}, err
	}
	worker, err := os.ReadFile(workerPart)
	if err != nil {
		return made{}, err
	}
	kernel, err := b.size(b.arch.kernelFile())
	if err != nil {
		return made{}, err
	}
	m := made{base: b, initramfs: join(modules, worker)}
	total := kernel + int64(len(m.initramfs))
	fmt.Fprintf(out, "%s: kernel %s + modules %s + worker %s = %s (at most %s, %s wanted)\n", b.arch.name, mb(kernel),
		mb(int64(len(modules))), mb(int64(len(worker))), mb(total), mb(b.arch.limit), mb(b.arch.wanted))
	if total > b.arch.limit {
		return m, fmt.Errorf("%s: kernel and initramfs are %s, at most %s can be booted everywhere (take modules out of bootimage.ServerModules)",
			b.arch.name, mb(total), mb(b.arch.limit))
	}
	return m, nil
}

// size returns how many bytes a boot file of the base has.
func (b base) size(file string) (int64, error) {
	for _, o := range b.origins {
		if o.File == file {
			return o.Size, nil
		}
	}
	return 0, fmt.Errorf("%s: no boot file %s", b.dir, file)
}

// publish writes the boot files that changed into dir, each in one step, and
// provenance.json last. Files that are not among them go.
func publish(list []made, dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var origins []origin
	for _, m := range list {
		for _, o := range m.origins {
			data := m.initramfs
			var err error
			if o.File == modulesPart {
				sum := sha256.Sum256(data)
				o.File, o.SHA256, o.Size, o.Source = m.arch.initramfsFile(), hex.EncodeToString(sum[:]), int64(len(data)), "built"
				o.Licence += " and Apache-2.0" // the modules and the worker
			} else if data, err = os.ReadFile(filepath.Join(m.dir, o.stored())); err != nil {
				return err
			}
			if err := replace(filepath.Join(dir, o.stored()), data, out); err != nil {
				return err
			}
			origins = append(origins, o)
		}
	}
	if err := remove(origins, dir, out); err != nil {
		return err
	}
	text, err := json.MarshalIndent(origins, "", "  ")
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, provenance), append(text, '\n'), out)
}

// remove takes out of dir what was not published: a build embeds all of it, also files
// of other architectures and those that an earlier version made. A folder without
// provenance.json has none of these, and may be somebody's own.
func remove(published []origin, dir string, out io.Writer) error {
	if _, err := os.Lstat(filepath.Join(dir, provenance)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	keep := []string{provenance, "README.md", ".gitignore"} // the last two are in the repository
	for _, o := range published {
		keep = append(keep, o.stored())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || slices.Contains(keep, e.Name()) {
			continue
		}
		file := filepath.Join(dir, e.Name())
		if err := os.Remove(file); err != nil {
			return err
		}
		fmt.Fprintf(out, "removed %s\n", file)
	}
	return nil
}

// join puts one archive behind the other, as init/initramfs.c of the kernel
// reads them: zeros up to a multiple of four bytes may lie between.
func join(first, second []byte) []byte {
	joined := append([]byte{}, first...)
	joined = append(joined, make([]byte, -len(first)&3)...)
	return append(joined, second...)
}

// replace writes a file in one step, unless it has that content already: its
// time decides whether `go build` links the appliance again.
func replace(file string, data []byte, out io.Writer) error {
	sum := sha256.Sum256(data)
	if have, err := checksum(file); err == nil && have == hex.EncodeToString(sum[:]) {
		return nil
	}
	// The temporary file is a sibling of the folder, which is embedded whole.
	tmp, err := os.CreateTemp(filepath.Dir(filepath.Dir(file)), ".mkassets-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Chmod(tmp.Name(), 0o644); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s (%s)\n", file, mb(int64(len(data))))
	return nil
}

func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
