// Command labimage builds the lab's Debian image, unless the cache has it, and
// prints where it is and what its digest is. With an argument it also unpacks
// the disk to that file.
package main

import (
	"context"
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
	img, err := lab.DebianImage(ctx, "", func(step string) { fmt.Fprintln(os.Stderr, step) })
	if err != nil {
		return err
	}
	fmt.Printf("%s\nsha256 %s\n%d bytes, %d unpacked, kernel %s\n", img.Path, img.SHA256, img.Size, img.VirtualSize, img.Kernel)
	if len(args) == 1 {
		return img.Unpack(ctx, args[0])
	}
	return nil
}
