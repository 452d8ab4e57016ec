package ipxe

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// embedded holds what `make assets` made. A build without assets has only a
// README here; [Assets.Missing] then says so.
//
//go:embed all:embedded
var embedded embed.FS

// ErrAssetName is wrapped by [Assets.Open] when the name of an asset could not
// name a file: it is empty or has "..", a backslash, a hidden element or a
// control character. Such names come from strangers and count as "not found".
var ErrAssetName = errors.New("not the name of a boot file")

// archAssets are the files that a complete build embeds, by architecture, in the
// order in which machines ask for them.
var archAssets = map[string][]string{
	"amd64": {
		"undionly.kpxe", "snponly.efi", "ipxe.efi",
		"shimx64.efi", "grubx64.efi",
		"vmlinuz-amd64", "initramfs-amd64",
	},
	"arm64": {
		"shimaa64.efi", "grubaa64.efi",
		"vmlinuz-arm64", "initramfs-arm64",
	},
}

// AssetNames lists the files that a complete build embeds.
func AssetNames() []string { return slices.Concat(archAssets["amd64"], archAssets["arm64"]) }

// Assets opens boot programs, kernels and initramfs files: those embedded in
// this binary, overridden by or added to from the operator's drop-in folders.
// It is safe for concurrent use. The folders are read at each call, so a file
// dropped in is served to the next machine.
type Assets struct {
	builtin fs.FS
	boot    string // drop-in folder of boot programs
	parts   string // drop-in folder of extra initramfs parts

	scratch  string // folder for what is unpacked
	unpacked unpacked

	mu   sync.Mutex
	sums map[string]string // guarded by mu: identity of the content to its sha256
}

// NewAssets returns the assets of this binary merged with the drop-in folders
// `boot` and `initramfs` under dataDir. The folders need not exist.
func NewAssets(dataDir string) *Assets {
	sub, err := fs.Sub(embedded, "embedded")
	if err != nil {
		panic("ipxe: the embed directive and the folder name differ: " + err.Error())
	}
	return newAssets(sub, dataDir)
}

func newAssets(builtin fs.FS, dataDir string) *Assets {
	return &Assets{
		builtin: builtin,
		boot:    filepath.Join(dataDir, "boot"),
		parts:   filepath.Join(dataDir, "initramfs"),
		scratch: dataDir,
		sums:    map[string]string{},
	}
}

// Open returns the asset with that name; the caller closes it. Leading slashes
// are ignored, as PXE firmware sends them. An initramfs is returned with the
// operator's extra parts behind it.
//
// It returns an error wrapping [ErrAssetName] for a bad name, one wrapping
// [fs.ErrNotExist] when there is no such file, and another error when a file
// in a drop-in folder cannot be used.
func (a *Assets) Open(name string) (*Asset, error) {
	clean, err := cleanName(name)
	if err != nil {
		return nil, err
	}
	parts, err := a.base(clean)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(clean, "initramfs-") {
		extra, err := a.extraParts()
		if err != nil {
			return nil, errors.Join(err, closeParts(parts))
		}
		parts = append(parts, extra...)
	}
	return newAsset(a, path.Base(clean), parts), nil
}

// base opens the operator's file of that name, else the embedded one.
func (a *Assets) base(name string) ([]part, error) {
	p, err := openDropIn(a.boot, name)
	if err == nil {
		return []part{p}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if p, err = a.openBuiltin(name); err != nil {
		return nil, err
	}
	return []part{p}, nil
}

// openBuiltin opens an embedded file without copying it: embed.FS hands out
// readers over the binary's read-only data. One that is embedded packed is unpacked
// first, once.
func (a *Assets) openBuiltin(name string) (part, error) {
	if !isAssetName(name) {
		return part{}, fmt.Errorf("boot file %q: %w", name, fs.ErrNotExist)
	}
	f, err := a.builtin.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return a.openPacked(name)
	}
	if err != nil {
		return part{}, fmt.Errorf("boot file %q: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return part{}, errors.Join(fmt.Errorf("boot file %q: %w", name, err), f.Close())
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		return part{}, errors.Join(fmt.Errorf("boot file %q: %T reads only forwards", name, f), f.Close())
	}
	return part{ReaderAt: r, Closer: f, size: info.Size(), id: "embedded:" + name}, nil
}

// Missing returns nil when everything that a machine of that architecture boots can
// be opened, else an error that names the files and says what to do.
func (a *Assets) Missing(arch string) error {
	names, ok := archAssets[arch]
	if !ok {
		return fmt.Errorf("there are no boot files for %s (amd64 or arm64)", arch)
	}
	var missing []string
	var broken []error
	for _, name := range names {
		switch err := a.check(name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			broken = append(broken, err)
		}
	}
	if len(missing) > 0 {
		broken = append(broken, fmt.Errorf(
			"boot files for %s missing: %s (run `make assets` and build again, or put them into %s)",
			arch, strings.Join(missing, ", "), a.boot))
	}
	return errors.Join(broken...)
}

// check returns the error that opening an asset would have, without unpacking one
// for it.
func (a *Assets) check(name string) error {
	_, err := fs.Stat(a.builtin, name+packedSuffix)
	_, own := fs.Stat(os.DirFS(a.boot), name)
	if err == nil && errors.Is(own, fs.ErrNotExist) {
		return nil
	}
	f, err := a.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// cleanName returns the name as a slash-separated path below a drop-in folder.
func cleanName(name string) (string, error) {
	rel := strings.TrimLeft(name, "/")
	bad := !fs.ValidPath(rel) || rel == "." || strings.ContainsFunc(rel, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\'
	})
	for elem := range strings.SplitSeq(rel, "/") {
		bad = bad || strings.HasPrefix(elem, ".")
	}
	if bad {
		return "", fmt.Errorf("%w: %q", ErrAssetName, name)
	}
	return rel, nil
}

func isAssetName(name string) bool { return slices.Contains(AssetNames(), name) }
