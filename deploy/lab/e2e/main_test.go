// Package e2e_test installs real systems on virtual machines with real firmware,
// through the real binary, and breaks things on the way.
package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
)

// binEnv names the binary under test, with the boot files inside: `make build`.
const binEnv = "RACKSTRAP_BIN"

// installTime bounds one install under emulation on two cores that others use too.
const installTime = 15 * time.Minute

func newRack(t *testing.T, name string) *rig.Rack {
	t.Helper()
	return makeRack(t, name, rig.NewRack)
}

func makeRack(t *testing.T, name string, make func(ctx context.Context, name, dir, bin string) (*rig.Rack, error)) *rig.Rack {
	t.Helper()
	lab.Require(t, "qemu-system-x86_64", "mmdebstrap")
	bin := os.Getenv(binEnv)
	if bin == "" {
		root, err := filepath.Abs("../../..")
		if err != nil {
			t.Fatal(err)
		}
		bin = filepath.Join(root, "bin", "rackstrap")
	}
	r, err := make(t.Context(), name, workDir(t), bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			dump(t, r)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// workDir is a short path: unix sockets below it have 108 bytes.
func workDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "rs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// addDebian puts the Debian image into the appliance; the first test builds it.
func addDebian(t *testing.T, r *rig.Rack) lab.Image {
	t.Helper()
	return addImage(t, r, "amd64")
}

// addImage is addDebian for an architecture.
func addImage(t *testing.T, r *rig.Rack, arch string) lab.Image {
	t.Helper()
	img, err := lab.DebianImageFor(t.Context(), arch, "", func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AddImage(t.Context(), rig.ImageName, img, nil); err != nil {
		t.Fatal(err)
	}
	return img
}

// dump shows what a person would look at first.
func dump(t *testing.T, r *rig.Rack) {
	if b, err := os.ReadFile(r.Appliance.Log); err == nil {
		t.Logf("appliance:\n%s", b[max(0, len(b)-8000):])
	}
	logs, _ := filepath.Glob(filepath.Join(r.Lab.Dir(), "*", "serial*"))
	more, _ := filepath.Glob(filepath.Join(r.Lab.Dir(), "*", "*", "serial*"))
	for _, p := range append(logs, more...) {
		if b, err := os.ReadFile(p); err == nil {
			t.Logf("%s:\n%s", p, b[max(0, len(b)-4000):])
		}
	}
}
