// Command mkassets makes the boot files that package ipxe embeds: boot programs
// and kernel from Debian packages, and the initramfs with the worker.
//
// It runs on Debian 12 amd64, as any user. Packages are downloaded with
// apt-get, which checks their signatures, and unpacked; nothing is installed.
// It needs the programs of ../../packages.txt and apt's lists (`apt-get
// update`); those of arm64's packages it fetches itself. What it downloads and
// compresses is kept in $RACKSTRAP_CACHE, or in ~/.cache/rackstrap.
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

// options is what the command line says.
type options struct {
	arches  []arch
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
		err = run(ctx, opts, func(a arch) tools { return system(a, opts.cache) }, os.Stdout)
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
	names := fs.String("arch", "amd64,arm64", "make the boot files of these `architectures`, and remove all others")
	fs.StringVar(&o.worker, "worker", "", "use this static `program` instead of building ./cmd/rackstrap-worker; needs one -arch")
	fs.StringVar(&o.ldflags, "ldflags", "-s -w", "linker `flags` for building the worker")
	fs.IntVar(&o.level, "level", 19, "zstd `level` for the worker; 3 is quick, for trying things out")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("%q: no arguments are taken", fs.Arg(0))
	}
	var err error
	if o.arches, err = chosen(*names); err != nil {
		return o, err
	}
	if o.worker != "" && len(o.arches) > 1 {
		return o, fmt.Errorf("-worker %s is for one architecture (add -arch amd64 or -arch arm64)", o.worker)
	}
	o.cache, err = filepath.Abs(o.cache)
	return o, err
}

// run makes the boot files, reusing what the cache has. It writes nothing unless
// all of them can be made.
func run(ctx context.Context, o options, toolsFor func(arch) tools, out io.Writer) error {
	unlock, err := lock(o.cache)
	if err != nil {
		return err
	}
	defer unlock()
	var list []made
	for _, a := range o.arches {
		t := toolsFor(a)
		b, err := makeBase(ctx, o.cache, a, t, out)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		part, err := makeWorkerPart(ctx, o, a, t)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		m, err := assemble(b, part, out)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	return publish(list, o.out, out)
}
