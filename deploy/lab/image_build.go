package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed recipe/packages.txt
var recipePackages string

//go:embed recipe/customize.sh
var recipeScript string

//go:embed recipe/bios.sh
var recipeBIOS string

// recipeVersion changes when the code of the builder makes another image.
const recipeVersion = "2"

// Identities of the image's file systems, the same in every build: GRUB and
// fstab name them.
const (
	rootUUID = "6d9f8a52-0f8e-4c57-9a39-2a1f0c1be201"
	espID    = "52530001" // a FAT volume id
)

// recipe is how an image is made: what is installed, and what runs in the new root.
type recipe struct {
	arch     imageArch
	name     string // of the image in the cache
	packages string // as recipe/packages.txt, besides those of the architecture
	script   string
	// add puts into the root what no Debian package has; inputs are what it depends on.
	// nil: there is nothing.
	add    func(ctx context.Context, work, root string) error
	inputs []string
}

// debianRecipe is the plain system.
func debianRecipe(a imageArch) recipe {
	return recipe{arch: a, name: a.name(), packages: recipePackages, script: a.script()}
}

// key is the same for recipes that make the same image.
func (r recipe) key() string {
	parts := append([]string{recipeVersion, r.packages, strings.Join(r.arch.packages, " "), r.script}, r.inputs...)
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:6])
}

// buildImage makes the image in the work directory and renames it to base.raw.zst.
func buildImage(ctx context.Context, r recipe, work, base string, progress func(string)) (Image, error) {
	start, a := time.Now(), r.arch
	say := func(format string, args ...any) { progress(r.name + ": " + fmt.Sprintf(format, args...)) }
	root, disk := filepath.Join(work, "root"), filepath.Join(work, "disk.raw")
	packages := append(parsePackages(r.packages), a.packages...)
	say("installing Debian 12 for %s with %d packages and what they need (mmdebstrap)", a.debian, len(packages))
	if err := bootstrap(ctx, a, root, packages); err != nil {
		return Image{}, err
	}
	kernels, err := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if err != nil {
		return Image{}, err
	}
	if len(kernels) != 1 {
		return Image{}, fmt.Errorf("the new root has %d kernels, want 1", len(kernels))
	}
	img := Image{Arch: a.debian, Kernel: strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")}

	say("boot programs and configuration")
	if err := customize(ctx, root, r.script); err != nil {
		return Image{}, err
	}
	if r.add != nil {
		say("what is not of Debian")
		if err := r.add(ctx, work, root); err != nil {
			return Image{}, err
		}
	}
	boot, err := takeBootFiles(a, root)
	if err != nil {
		return Image{}, err
	}
	say("partitions and file systems")
	if err := makeImageDisk(ctx, work, root, disk, boot); err != nil {
		return Image{}, err
	}
	if img.RawSHA256, img.VirtualSize, err = hashFile(disk); err != nil {
		return Image{}, err
	}
	say("compressing %d MiB", img.VirtualSize>>20)
	packed := disk + ".zst"
	if err := run(ctx, "zstd", "-q", "-T0", "-9", "-o", packed, disk); err != nil {
		return Image{}, err
	}
	if img.SHA256, img.Size, err = hashFile(packed); err != nil {
		return Image{}, err
	}
	img.Path, img.BuildTime = base+".raw.zst", time.Since(start).Round(time.Second).String()
	if err := errors.Join(os.Chmod(packed, 0o644), os.Rename(packed, img.Path)); err != nil {
		return Image{}, err
	}
	b, err := json.MarshalIndent(img, "", "  ")
	if err != nil {
		return Image{}, err
	}
	tmp := filepath.Join(work, "description")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o644); err != nil {
		return Image{}, err
	}
	if err := os.Rename(tmp, base+".json"); err != nil {
		return Image{}, err
	}
	say("%d MiB, %d MiB compressed, built in %s", img.VirtualSize>>20, img.Size>>20, img.BuildTime)
	return img, nil
}

// bootstrap installs Debian into root.
func bootstrap(ctx context.Context, a imageArch, root string, packages []string) error {
	return runTail(exec.CommandContext(ctx, "mmdebstrap", "--mode=root", "--variant=minbase",
		"--architectures="+a.debian, "--components=main",
		// It would look for Debian's own name of the emulator.
		"--skip=check/qemu",
		// Makes the initramfs of the kernel's installation, which is not the last one, small.
		`--essential-hook=mkdir -p "$1/etc/initramfs-tools/conf.d" && echo MODULES=list >"$1/etc/initramfs-tools/conf.d/lab"`,
		// Documentation and translations would be a fifth of the image.
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright", "--dpkgopt=path-exclude=/usr/share/locale/*",
		"--include="+strings.Join(packages, ","), "bookworm", root))
}

// customize runs the recipe's script inside root.
func customize(ctx context.Context, root, script string) error {
	cmd := exec.CommandContext(ctx, "chroot", root, "/bin/sh")
	cmd.Stdin = strings.NewReader(script)
	// systemctl and the initramfs hooks must not look at the host.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "SYSTEMD_OFFLINE=1"}
	return runTail(cmd)
}

// takeBootFiles reads what the script made for the BIOS, nil where there is none, and
// takes it and the logs of the installation out of the root.
func takeBootFiles(a imageArch, root string) (*biosBoot, error) {
	var b *biosBoot
	if a.bios {
		tmp := filepath.Join(root, "tmp")
		boot, err := os.ReadFile(filepath.Join(tmp, "boot.img"))
		if err != nil {
			return nil, err
		}
		core, err := os.ReadFile(filepath.Join(tmp, "core.img"))
		if err != nil {
			return nil, err
		}
		b = &biosBoot{boot, core}
	}
	for _, name := range []string{"tmp/boot.img", "tmp/core.img", "var/log/dpkg.log", "var/log/alternatives.log", "var/log/bootstrap.log"} {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			return b, err
		}
	}
	return b, nil
}

// parsePackages reads a package list.
func parsePackages(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "#")
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// runTail runs a talkative command and puts its last words into the error.
func runTail(cmd *exec.Cmd) error {
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, tail(string(said), 20))
	}
	return nil
}

func hashFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// treeSize is the space that a directory tree takes in 4 KiB blocks, in bytes.
func treeSize(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += (info.Size() + 4095) / 4096 * 4096
		}
		return err
	})
	return size, err
}
