package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// CacheEnv names the directory in which the lab keeps what takes long to build.
const CacheEnv = "RACKSTRAP_CACHE"

// Image is an operating system image: a raw disk, compressed with zstd.
type Image struct {
	Path        string `json:"-"`           // the compressed file
	SHA256      string `json:"sha256"`      // of the compressed file, hex
	Size        int64  `json:"size"`        // of the compressed file, bytes
	RawSHA256   string `json:"rawSHA256"`   // of the disk
	VirtualSize int64  `json:"virtualSize"` // of the disk, bytes
	Kernel      string `json:"kernel"`      // its release
	BuildTime   string `json:"buildTime"`   // how long the build took
	Arch        string `json:"arch"`        // as Debian names it
}

// CacheDir is the default cache directory: $RACKSTRAP_CACHE, else
// ~/.cache/rackstrap.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache: %w (set %s)", err, CacheEnv)
	}
	return filepath.Join(home, ".cache", "rackstrap"), nil
}

// DebianImage is DebianImageFor amd64.
func DebianImage(ctx context.Context, cacheDir string, progress func(string)) (Image, error) {
	return DebianImageFor(ctx, "amd64", cacheDir, progress)
}

// DebianImageFor returns the Debian 12 cloud image of this recipe for an architecture,
// amd64 or arm64, from cacheDir, or from CacheDir if it is empty. If it is not there it
// is built, with root and the packages of packages.txt: in about two minutes, and in
// five times that where this machine has to emulate the processor. progress, if not nil,
// hears of each step. With or without Secure Boot UEFI starts the image, and BIOS that
// for amd64. Its kernel knows virtio and NVMe disks but no SATA. No datasource is pinned
// in its cloud-init, its root partition is the last one, and it has neither SSH host
// keys nor a machine id. Two builders do not collide: the second waits for the first.
func DebianImageFor(ctx context.Context, arch, cacheDir string, progress func(string)) (Image, error) {
	a, ok := imageArches[arch]
	if !ok {
		return Image{}, fmt.Errorf("image for %q: use amd64 or arm64", arch)
	}
	return makeImage(ctx, debianRecipe(a), cacheDir, progress)
}

// makeImage returns the image of a recipe, from the cache or built.
func makeImage(ctx context.Context, r recipe, cacheDir string, progress func(string)) (Image, error) {
	if progress == nil {
		progress = func(string) {}
	}
	if cacheDir == "" {
		var err error
		if cacheDir, err = CacheDir(); err != nil {
			return Image{}, err
		}
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return Image{}, err
	}
	base := filepath.Join(cacheDir, r.name+"-"+r.key())
	if img, err := cached(base); err == nil || !errors.Is(err, os.ErrNotExist) {
		return img, err
	}
	unlock, err := lockFile(ctx, filepath.Join(cacheDir, r.name+".lock"), func() {
		progress("another process builds the image " + r.name + ": waiting for it")
	})
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if img, err := cached(base); err == nil || !errors.Is(err, os.ErrNotExist) {
		return img, err
	}
	work, err := os.MkdirTemp(cacheDir, ".building-")
	if err != nil {
		return Image{}, err
	}
	defer os.RemoveAll(work)
	undo, err := emulate(ctx, r.arch.debian, cacheDir)
	if err != nil {
		return Image{}, fmt.Errorf("build the image %s: %w", r.name, err)
	}
	img, err := buildImage(ctx, r, work, base, progress)
	if err = errors.Join(err, undo()); err != nil {
		return Image{}, fmt.Errorf("build the image %s: %w", r.name, err)
	}
	return img, nil
}

// cached reads an image from the cache. The description is written last, so an
// image that has one is complete.
func cached(base string) (Image, error) {
	img := Image{Path: base + ".raw.zst"}
	b, err := os.ReadFile(base + ".json")
	if err != nil {
		return img, err
	}
	if err := json.Unmarshal(b, &img); err != nil {
		return img, fmt.Errorf("%s: %w (remove it to build the image again)", base+".json", err)
	}
	st, err := os.Stat(img.Path)
	if err == nil && st.Size() != img.Size {
		err = fmt.Errorf("%s: has %d bytes, its description says %d (remove it to build the image again)", img.Path, st.Size(), img.Size)
	}
	return img, err
}

// Unpack writes the disk to path, a sparse raw file.
func (i Image) Unpack(ctx context.Context, path string) error {
	return run(ctx, "zstd", "-d", "-q", "-f", "--sparse", "-o", path, i.Path)
}

// lockFile takes an exclusive lock that ends with the process at the latest.
// waiting is called if somebody else has it.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for first := true; ; first = false {
		// A blocking flock could not be cancelled.
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if first {
			waiting()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		}
	}
}
