// Command mkassets makes the boot files that package ipxe embeds: boot programs
// and kernel from Debian packages, and the initramfs with the worker.
//
// It runs on Debian 12 amd64, as any user. Packages are downloaded with
// apt-get, which checks their signatures, and unpacked; nothing is installed.
// It needs the programs of ../../packages.txt and apt's lists (`apt-get
// update`). What it downloads and compresses is kept in $RACKSTRAP_CACHE, or in
// ~/.cache/rackstrap.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Sizes in bytes of kernel and initramfs together. Some network cards' iPXE
// drivers hang on large downloads.
const (
	sizeWanted = 30_000_000
	sizeLimit  = 40_000_000
)

// options is what the command line says.
type options struct {
	out     string // folder of the boot files
	cache   string // folder that survives
	worker  string // a ready worker, or "" to build one
	ldflags string
	level   int // of compressing the worker
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parse(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, opts, system(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkassets:", err)
		os.Exit(1)
	}
}

func parse(args []string, getenv func(string) string) (options, error) {
	cache := getenv("RACKSTRAP_CACHE")
	if cache == "" {
		cache = filepath.Join(getenv("HOME"), ".cache", "rackstrap")
	}
	var o options
	fs := flag.NewFlagSet("mkassets", flag.ContinueOnError)
	fs.StringVar(&o.out, "out", "ipxe/embedded", "write the boot files into this `folder`")
	fs.StringVar(&o.cache, "cache", cache, "keep downloads and results in this `folder`")
	fs.StringVar(&o.worker, "worker", "", "use this static amd64 `program` instead of building ./cmd/rackstrap-worker")
	fs.StringVar(&o.ldflags, "ldflags", "-s -w", "linker `flags` for building the worker")
	fs.IntVar(&o.level, "level", 19, "zstd `level` for the worker; 3 is quick, for trying things out")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("%q: no arguments are taken", fs.Arg(0))
	}
	abs, err := filepath.Abs(o.cache)
	o.cache = abs
	return o, err
}

// run makes the boot files, reusing what the cache has.
func run(ctx context.Context, o options, t tools, out io.Writer) error {
	unlock, err := lock(o.cache)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := makeBase(ctx, o.cache, t, out)
	if err != nil {
		return err
	}
	part, err := makeWorkerPart(ctx, o, t)
	if err != nil {
		return err
	}
	return publish(b, part, o.out, out)
}
