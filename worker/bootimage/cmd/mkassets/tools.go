package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// tools are the programs that reach outside of the files given to them, for one
// architecture.
type tools struct {
	// show returns apt's stanzas of the candidate versions.
	show func(ctx context.Context, packages ...string) ([]bootimage.Stanza, error)
	// download puts that version of a package into dir.
	download func(ctx context.Context, dir, pkg, version string) error
	// depmod writes modules.dep and its kin for the kernel below root.
	depmod func(ctx context.Context, root, kernel string) error
	// buildWorker writes a static worker to file.
	buildWorker func(ctx context.Context, file, ldflags string) error
}

func system(a arch, cache string) tools {
	l := lists{arch: a.name, dir: filepath.Join(cache, "apt-"+a.name)}
	return tools{
		show: func(ctx context.Context, packages ...string) ([]bootimage.Stanza, error) {
			options, err := l.options(ctx)
			if err != nil {
				return nil, err
			}
			text, err := command(ctx, "", "apt-cache", slices.Concat([]string{"show", "--no-all-versions"}, options, packages)...)
			if err != nil {
				return nil, fmt.Errorf("%w (%s)", errors.Join(err, l.forget()), l.remedy())
			}
			return bootimage.ParseControl(text)
		},
		download: func(ctx context.Context, dir, pkg, version string) error {
			options, err := l.options(ctx)
			if err != nil {
				return err
			}
			if _, err = command(ctx, dir, "apt-get", slices.Concat([]string{"download", "-q", pkg + "=" + version}, options)...); err != nil {
				return fmt.Errorf("%w (%s)", errors.Join(err, l.forget()), l.remedy())
			}
			return nil
		},
		depmod: func(ctx context.Context, root, kernel string) error {
			_, err := command(ctx, "", "depmod", "-b", root, kernel)
			return err
		},
		buildWorker: func(ctx context.Context, file, ldflags string) error {
			// The state of the repository stays out, so that a commit that
			// leaves the worker alone leaves the initramfs alone.
			_, err := command(ctx, "", "env", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+a.name,
				"go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", ldflags, "-o", file, "./cmd/rackstrap-worker")
			return err
		},
	}
}

// command runs a program in dir and returns its output. Its messages are part
// of the error if it fails, and dropped otherwise.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	path, err := lookTool(name)
	if err != nil {
		return "", err
	}
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &messages
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(messages.String()))
	}
	return out.String(), nil
}

// lookTool finds a program. depmod is in a folder that is not in the search
// path of every user.
func lookTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w (install the packages in worker/bootimage/packages.txt)", err)
}

// The logarithms of zstd's windows, which are what unpacking costs in memory. That of
// an initramfs is below the kernel's limit of 27 (lib/decompress_unzstd.c); what the
// appliance unpacks is 2 % larger with a small one.
const (
	initramfsWindow = 25
	packedWindow    = 21
)

// compress writes what produce writes, as one zstd frame.
func compress(ctx context.Context, file string, level, window int, produce func(io.Writer) error) error {
	zstd, err := lookTool("zstd")
	if err != nil {
		return err
	}
	var messages bytes.Buffer
	cmd := exec.CommandContext(ctx, zstd, fmt.Sprint("-", level), fmt.Sprint("--long=", window), "-T0", "-q", "-f", "-o", file)
	cmd.Stderr = &messages
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	produceErr := produce(in)
	in.Close()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("zstd: %w: %s", err, strings.TrimSpace(messages.String()))
	}
	return produceErr
}
