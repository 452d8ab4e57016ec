package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// firstRelease unpacks the data directory of an appliance of the first release: an
// installed machine, one in the middle of its install, one that is new; a network,
// a kept image, an image elsewhere, leases.
func firstRelease(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open("testdata/first-release.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	a := tar.NewReader(z)
	for {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o700)
		} else {
			var b []byte
			if b, err = io.ReadAll(a); err == nil {
				err = os.WriteFile(to, b, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// openAppliance opens a data directory as the daemon does, with nothing that listens.
func openAppliance(t *testing.T, dir string) *appliance {
	t.Helper()
	c := defaultConfig()
	c.Data = dir
	a, err := newAppliance(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

// checkFirst checks that everything of the first release is there.
func checkFirst(t *testing.T, a *appliance) {
	t.Helper()
	ctx := t.Context()
	want := map[string]hardware.State{"done": hardware.StateProvisioned, "moving": hardware.StateProvisioning, "fresh": hardware.StateAvailable}
	for name, state := range want {
		h, err := a.db.HardwareByName(ctx, name)
		if err != nil || h.Status.State != state || !strings.Contains(h.Spec.UserData, "swordfish") || h.Meta.Labels["rack"] != "a1" {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	w, err := a.db.Workflow(ctx, "install-moving")
	if err != nil || w.Status.State != workflow.StateRunning || w.Spec.Params["userData"] != "secret-data" {
		t.Errorf("workflow: %+v, %v", w, err)
	}
	for _, name := range []string{"kept", "elsewhere"} {
		i, err := a.db.ImageByName(ctx, name)
		if err != nil {
			t.Errorf("image %s: %v", name, err)
		} else if err := i.Validate(); err != nil {
			t.Errorf("image %s: %v", name, err)
		}
	}
	if leases, err := a.db.ListLeases(ctx); err != nil || len(leases) != 3 {
		t.Errorf("leases: %+v, %v", leases, err)
	}
	if ev, err := a.db.Events(ctx, workflow.EventQuery{Workflow: "install-done"}); err != nil || len(ev) < 5 {
		t.Errorf("events: %d, %v", len(ev), err)
	}
	if s, err := a.db.ListSubnets(ctx); err != nil || len(s) != 1 {
		t.Errorf("subnets: %d, %v", len(s), err)
	}
}

func TestFirstReleaseOpens(t *testing.T) {
	t.Parallel()
	checkFirst(t, openAppliance(t, firstRelease(t)))
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	from := firstRelease(t)
	a := openAppliance(t, from)
	const pass = "correct horse battery"
	archives := map[string][]byte{}
	for _, p := range []string{"", pass} {
		taken, err := a.Backup(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_, err = taken.WriteTo(&b)
		if err := errors.Join(err, taken.Close()); err != nil {
			t.Fatal(err)
		}
		archives[p] = b.Bytes()
	}
	restore := func(dir, archive, pass string, replace bool) (string, error) {
		var out bytes.Buffer
		err := restorer{dir: dir, passphrase: pass, replace: replace, now: time.Unix(1e9, 0), out: &out}.restore(context.Background(), bytes.NewReader(archives[archive]))
		return out.String(), err
	}
	refused := func(what, dir, archive, p string, replace bool, want string) {
		t.Helper()
		if _, err := restore(dir, archive, p, replace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	refused("over records that are in use", from, "", "", true, "in use by")
	refused("over records", from, "", "", false, "--replace")
	empty := t.TempDir()
	refused("without a key", empty, "", "", false, "made without the key")
	refused("without the passphrase", empty, pass, "", false, "--passphrase-file")
	refused("with another passphrase", empty, pass, "incorrect horse", false, "not the one")
	other := t.TempDir()
	openAppliance(t, other).close()
	refused("with another appliance's key", other, "", "", true, "sealed with another key")
	if left, _ := os.ReadDir(empty); len(left) > 0 {
		t.Errorf("refusals left %v", left)
	}

	out, err := restore(empty, pass, pass, false)
	if err != nil || !strings.Contains(out, "on hold: fresh, moving") || !strings.Contains(out, "image files are not in a backup") {
		t.Fatalf("%q, %v", out, err)
	}
	b := openAppliance(t, empty)
	checkFirst(t, b)
	h, err := b.db.HardwareByName(t.Context(), "moving")
	if err != nil || !h.Status.Hold || h.Status.HoldReason != hardware.ReasonRestored {
		t.Errorf("a machine that was being installed: %+v, %v", h, err)
	}
	if b.id.caSHA256 != a.id.caSHA256 {
		t.Error("the restored appliance has another CA")
	}
	b.close()

	a.close()
	out, err = restore(from, "", "", true)
	if err != nil || !strings.Contains(out, "rackstrap.db.before-20010909T014640Z") {
		t.Fatalf("%q, %v", out, err)
	}
	checkFirst(t, openAppliance(t, from))
}
