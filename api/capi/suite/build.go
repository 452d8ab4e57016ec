package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// binEnv names the appliance's binary, where it is built already, with the boot files
// inside: `make build`.
const binEnv = "RACKSTRAP_BIN"

// Binaries are the programs under test.
type Binaries struct {
	Source    string // root of the source tree
	Appliance string
	Provider  string
	Tools     string // folder of etcd, kube-apiserver, kubectl, clusterctl, …
}

// Build makes the programs, once for all tests of a process; what did not change since
// the last time is not made again.
var Build = sync.OnceValues(func() (Binaries, error) {
	ctx := context.Background()
	var b Binaries
	var err error
	if b.Source, err = kube.Source(ctx); err != nil {
		return b, err
	}
	if b.Tools, err = kube.Tools(ctx, func(s string) { fmt.Fprintln(os.Stderr, s) }); err != nil {
		return b, err
	}
	dir := filepath.Join(b.Source, "bin", "suite")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b, err
	}
	// Tests of several packages run at the same time.
	lock, err := os.Create(filepath.Join(dir, ".lock"))
	if err != nil {
		return b, err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return b, err
	}
	if b.Appliance = os.Getenv(binEnv); b.Appliance == "" {
		if b.Appliance, err = build(ctx, b.Source, dir, "./cmd/rackstrap"); err != nil {
			return b, err
		}
	}
	b.Provider, err = build(ctx, filepath.Join(b.Source, "api/capi"), dir, "./cmd/rackstrap-capi")
	return b, err
})

func build(ctx context.Context, module, dir, pkg string) (string, error) {
	out := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Dir = module
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, said)
	}
	return out, nil
}
