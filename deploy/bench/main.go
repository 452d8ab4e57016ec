// Command bench measures the appliance and the worker beside what one would use
// instead: image.write beside curl | zstd | dd on the same loop device, in turns.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/workflow"
)

const rounds = 3

func main() {
	keep := flag.String("data", "", "keep the records of the control plane in this directory, and use them again")
	flag.Parse()
	if err := run(context.Background(), *keep, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the parts that were named, all where none was.
func run(ctx context.Context, keep string, names []string) error {
	parts := []struct {
		name string
		run  func(context.Context) error
	}{{"sizes", sizes}, {"idle", daemon}, {"image", imageWrite}, {"control", func(ctx context.Context) error { return control(ctx, keep) }}, {"pages", func(ctx context.Context) error { return pages(ctx, keep) }}}
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// sizes are what a machine loads before its worker runs.
func sizes(context.Context) error {
	fmt.Println("\n== what a machine loads")
	total := int64(0)
	for _, name := range []string{"vmlinuz-amd64", "initramfs-amd64"} {
		st, err := os.Stat(filepath.Join("ipxe", "embedded", name))
		if err != nil {
			return fmt.Errorf("%w (make build makes it)", err)
		}
		fmt.Printf("%-18s %6.1f MB\n", name, float64(st.Size())/1e6)
		total += st.Size()
	}
	fmt.Printf("%-18s %6.1f MB (at most 40, 30 wanted)\n", "together", float64(total)/1e6)
	return nil
}

// daemon is the appliance without work.
func daemon(ctx context.Context) error {
	fmt.Println("\n== the appliance, idle")
	dir, err := os.MkdirTemp("", "rsb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	r, err := rig.NewRack(ctx, "bench", dir, "bin/rackstrap")
	if err != nil {
		return err
	}
	ready := time.Since(start)
	now, peak := r.Appliance.MemoryMiB()
	fmt.Printf("ready with a new store after %.0f ms (the lab's namespace included); %.0f MiB resident, %.0f at most\n", ready.Seconds()*1e3, now, peak)
	return r.Close()
}

// imageWrite compares the worker's action with a shell pipeline.
func imageWrite(ctx context.Context) error {
	fmt.Println("\n== image.write beside curl | zstd -dc | dd, onto one loop device, in turns")
	img, err := lab.DebianImage(ctx, "", func(s string) { fmt.Println("  ", s) })
	if err != nil {
		return err
	}
	dev, done, err := loopDevice(img.VirtualSize + 64<<20)
	if err != nil {
		return err
	}
	defer done()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, img.Path) })}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	url := "http://" + l.Addr().String() + "/image"
	var ours, theirs []float64
	for range rounds {
		a, err := timed(func() error { return ourWrite(ctx, url, dev, img.SHA256) })
		if err != nil {
			return err
		}
		b, err := timed(func() error { return pipeline(ctx, url, dev) })
		if err != nil {
			return err
		}
		ours, theirs = append(ours, a), append(theirs, b)
	}
	size := float64(img.VirtualSize) / 1e6
	o, t := median(ours), median(theirs)
	fmt.Printf("image %.0f MB, %.0f MB as zstd; medians of %d\n", size, float64(img.Size)/1e6, rounds)
	fmt.Printf("%-34s %6.2f s %7.0f MB/s   %v\n", "image.write (checks sha256, reads back)", o, size/o, ours)
	fmt.Printf("%-34s %6.2f s %7.0f MB/s   %v\n", "curl | zstd -dc | dd oflag=direct", t, size/t, theirs)
	fmt.Printf("image.write takes %.2f of the pipeline's time\n", o/t)
	return nil
}

func ourWrite(ctx context.Context, url, dev, sum string) error {
	o, err := json.Marshal(workflow.ImageWrite{Disk: workflow.Disk(dev), Image: url, Checksum: "sha256:" + sum})
	if err != nil {
		return err
	}
	_, err = action.Runners()[workflow.KindImageWrite].Run(ctx, action.Env{}, o)
	return err
}

func pipeline(ctx context.Context, url, dev string) error {
	out, err := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c",
		`curl -sf "$0" | zstd -dc --long=31 | dd of="$1" bs=4M iflag=fullblock oflag=direct conv=fsync status=none`, url, dev).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pipeline: %w: %s", err, out)
	}
	return nil
}

func loopDevice(size int64) (dev string, done func(), err error) {
	f, err := os.CreateTemp("", "rsbench")
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return "", nil, err
	}
	out, err := exec.Command("losetup", "--find", "--show", f.Name()).CombinedOutput()
	dev = strings.TrimSpace(string(out))
	if err != nil {
		_ = os.Remove(f.Name())
		return "", nil, fmt.Errorf("losetup: %w: %s", err, dev)
	}
	return dev, func() {
		_ = exec.Command("losetup", "--detach", dev).Run()
		_ = os.Remove(f.Name())
	}, nil
}

func timed(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return time.Since(start).Seconds(), err
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
