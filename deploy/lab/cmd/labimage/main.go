// Command labimage builds the lab's Debian image for -arch, unless the cache has it,
// and prints where it is and what its digest is. With -node it is the image of a node of
// Kubernetes, with the binaries of that folder. With an argument it also unpacks the
// disk to that file.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "labimage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("labimage", flag.ContinueOnError)
	arch := flags.String("arch", "amd64", "the image's `architecture`: amd64 or arm64")
	node := flags.String("node", "", "the `folder` that deploy/capi/env/build prints: a node image")
	if err := flags.Parse(args); err != nil {
		return err
	}
	say := func(step string) { fmt.Fprintln(os.Stderr, step) }
	img, err := lab.Image{}, error(nil)
	if *node != "" {
		img, err = lab.NodeImage(ctx, *node, "", say)
	} else {
		img, err = lab.DebianImageFor(ctx, *arch, "", say)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s\nsha256 %s\n%d bytes, %d unpacked, kernel %s\n", img.Path, img.SHA256, img.Size, img.VirtualSize, img.Kernel)
	if flags.NArg() == 1 {
		return img.Unpack(ctx, flags.Arg(0))
	}
	return nil
}
