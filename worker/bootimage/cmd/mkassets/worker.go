package main

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rackstrap/rackstrap/worker/bootimage"
)

// makeWorkerPart returns the file with the second archive of the initramfs:
// the worker and the folders that it mounts on.
func makeWorkerPart(ctx context.Context, o options, a arch, t tools) (string, error) {
	worker, err := readWorker(ctx, o, a, t)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(worker)
	k, err := key("worker "+hex.EncodeToString(sum[:]), fmt.Sprint("level ", o.level))
	if err != nil {
		return "", err
	}
	return cached(filepath.Join(o.cache, "worker"), k, 8, func(file string) error {
		return compress(ctx, file, o.level, initramfsWindow, func(w io.Writer) error {
			return bootimage.WriteCPIO(w, bootimage.WorkerEntries(worker))
		})
	})
}

// readWorker returns the program given on the command line, or builds it.
func readWorker(ctx context.Context, o options, a arch, t tools) ([]byte, error) {
	file := o.worker
	if file == "" {
		tmp, err := os.MkdirTemp("", "mkassets-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(tmp)
		file = filepath.Join(tmp, "rackstrap-worker")
		if err := t.buildWorker(ctx, file, o.ldflags); err != nil {
			return nil, err
		}
	}
	if err := checkWorker(file, a); err != nil {
		return nil, fmt.Errorf("worker %s: %w", file, err)
	}
	return os.ReadFile(file)
}

// checkWorker refuses what the kernel could not start as /init: there is no
// dynamic linker and no interpreter in the initramfs.
func checkWorker(file string, a arch) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Machine != a.machine || f.Class != elf.ELFCLASS64 {
		return fmt.Errorf("is for %v, not %s (build it with GOARCH=%s)", f.Machine, a.name, a.name)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("is dynamically linked (build it with CGO_ENABLED=0)")
		}
	}
	return nil
}
