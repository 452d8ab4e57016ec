package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// unpack downloads the packages that the cache lacks and extracts each into a
// folder of its own. The caller removes the folders, also after an error.
func unpack(ctx context.Context, cache string, packages map[string]bootimage.Stanza, t tools, out io.Writer) (map[string]string, error) {
	roots := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		deb, err := fetch(ctx, filepath.Join(cache, "debs"), packages[name], t, out)
		if err != nil {
			return roots, err
		}
		root, err := os.MkdirTemp(cache, ".tmp-unpacked-")
		if err != nil {
			return roots, err
		}
		roots[name] = root
		if _, err := command(ctx, "", "dpkg-deb", "-x", deb, root); err != nil {
			return roots, err
		}
	}
	return roots, nil
}

// fetch returns the package's file, which has the checksum that apt's signed
// lists say.
func fetch(ctx context.Context, dir string, pkg bootimage.Stanza, t tools, out io.Writer) (string, error) {
	name := fmt.Sprintf("%s_%s.deb", pkg["package"], pkg["sha256"])
	return cached(dir, name, 24, func(tmp string) error {
		size := ""
		if n, err := strconv.ParseInt(pkg["size"], 10, 64); err == nil {
			size = fmt.Sprintf(" (%.1f MB)", float64(n)/1e6)
		}
		fmt.Fprintf(out, "downloading %s %s%s\n", pkg["package"], pkg["version"], size)
		folder := filepath.Dir(tmp)
		if err := t.download(ctx, folder, pkg["package"], pkg["version"]); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.deb"))
		if err != nil || len(files) != 1 {
			return fmt.Errorf("downloading %s left %d files, want one", pkg["package"], len(files))
		}
		sum, err := checksum(files[0])
		if err != nil {
			return err
		}
		if !strings.EqualFold(sum, pkg["sha256"]) {
			return fmt.Errorf("package %s %s: sha256 is %s, apt's list says %s (run `apt-get update` as root and try again)",
				pkg["package"], pkg["version"], sum, pkg["sha256"])
		}
		return os.Rename(files[0], tmp)
	})
}

func copyTo(w io.Writer, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
