package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	kernelFile    = "vmlinuz-amd64"
	initramfsFile = "initramfs-amd64"
)

// publish writes the boot files that changed into dir, each in one step, and
// provenance.json last. It returns an error, and writes nothing, when kernel
// and initramfs are too large.
func publish(b base, workerPart, dir string, out io.Writer) error {
	modules, err := os.ReadFile(filepath.Join(b.dir, modulesPart))
	if err != nil {
		return err
	}
	worker, err := os.ReadFile(workerPart)
	if err != nil {
		return err
	}
	kernel, err := os.Stat(filepath.Join(b.dir, kernelFile))
	if err != nil {
		return err
	}
	initramfs := join(modules, worker)
	total := kernel.Size() + int64(len(initramfs))
	fmt.Fprintf(out, "kernel %s + modules %s + worker %s = %s (at most %s, %s wanted)\n", mb(kernel.Size()),
		mb(int64(len(modules))), mb(int64(len(worker))), mb(total), mb(sizeLimit), mb(sizeWanted))
	if total > sizeLimit {
		return fmt.Errorf("kernel and initramfs are %s, at most %s can be booted everywhere (take modules out of bootimage.ServerModules)",
			mb(total), mb(sizeLimit))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var origins []origin
	for _, o := range b.origins {
		data := initramfs
		if o.File == modulesPart {
			sum := sha256.Sum256(initramfs)
			o.File, o.SHA256, o.Source = initramfsFile, hex.EncodeToString(sum[:]), "built"
			o.Licence += " and Apache-2.0" // the modules and the worker
		} else if data, err = os.ReadFile(filepath.Join(b.dir, o.File)); err != nil {
			return err
		}
		if err := replace(filepath.Join(dir, o.File), data, out); err != nil {
			return err
		}
		origins = append(origins, o)
	}
	text, err := json.MarshalIndent(origins, "", "  ")
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, "provenance.json"), append(text, '\n'), out)
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
