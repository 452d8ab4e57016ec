// Command image writes a container image from static binaries, without a builder and
// without a registry: an OCI image layout in a tar file, as `skopeo copy`, `podman load`
// and `ctr image import` read it. The same binaries give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	name := flag.String("name", "", "name of the image, such as ghcr.io/rackstrap/rackstrap-capi:v0.1.0")
	out := flag.String("o", "", "the tar file to write")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: image -name NAME:TAG -o FILE.tar ARCHITECTURE=BINARY...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*name, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(name, out string, args []string) error {
	if name == "" || out == "" || len(args) == 0 {
		return errors.New("needs -name, -o and at least one ARCHITECTURE=BINARY")
	}
	var binaries []binary
	for _, a := range args {
		arch, path, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%s: write ARCHITECTURE=BINARY, such as amd64=bin/rackstrap-capi", a)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := runs(arch, data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		binaries = append(binaries, binary{arch, data})
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(write(f, name, binaries), f.Close())
}
