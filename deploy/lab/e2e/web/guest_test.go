package web_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/deploy/lab/stage"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// guestName is the machine's, which is at the guestAddr-th address.
	guestName = "guest-1"
	guestAddr = 11
	guestDisk = 4 << 30
	// guestTime bounds one install under emulation on two cores that others use too.
	guestTime = 15 * time.Minute
)

// TestGuest runs the files in which a real system is installed on a virtual machine, whose
// power the appliance switches.
func TestGuest(t *testing.T) {
	t.Parallel()
	require(t, "qemu-system-x86_64", "mmdebstrap")
	for _, f := range files(t, "guest") {
		t.Run(name(f), func(t *testing.T) {
			node(t, f, guestTime, newGuest(t))
		})
	}
}

// newGuest is an appliance with a virtual machine that is off and has no system.
func newGuest(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r, err := rig.NewRack(t.Context(), "webguest", dir, binary(t))
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
	img, err := lab.DebianImageFor(t.Context(), "amd64", "", func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AddImage(t.Context(), rig.ImageName, img, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddPowered(t.Context(), lab.MachineSpec{Name: guestName, Firmware: lab.UEFI, CPUs: 2, Disks: []lab.DiskSpec{{Size: guestDisk, Serial: "D1"}}}, guestAddr); err != nil {
		t.Fatal(err)
	}
	return guestDoor(t, r)
}

// guestDoor is the way to the appliance, with tokens.
func guestDoor(t *testing.T, r *rig.Rack) []string {
	t.Helper()
	door, err := stage.OpenDoor(t.Context(), r.Lab.Namespace, net.JoinHostPort(r.Lab.Gateway().String(), client.DefaultPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := door.Close(); err != nil {
			t.Error(err)
		}
	})
	tokens := map[hardware.Role]string{}
	var fingerprint string
	for _, role := range []hardware.Role{hardware.RoleAdmin, hardware.RoleOperator, hardware.RoleViewer} {
		made, err := r.Appliance.Client.CreateToken(t.Context(), "web-"+string(role), api.NewTokenSpec{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		tokens[role], fingerprint = made.Secret, made.Fingerprint
	}
	all := daemonDeeds(r.Appliance)
	// check asks the installed system, over SSH, whether it is the one that was wanted.
	all["check"] = func(ctx context.Context, _ url.Values) (any, error) {
		ssh, err := r.Check(ctx, guestName, guestAddr)
		if ssh != nil {
			err = errors.Join(err, ssh.Close())
		}
		return nil, err
	}
	return where("https://"+door.Addr(), tokens, fingerprint, serveDeeds(t, all))
}

// dump shows what a person would look at first.
func dump(t *testing.T, r *rig.Rack) {
	t.Helper()
	logs, _ := filepath.Glob(filepath.Join(r.Lab.Dir(), "*", "*", "serial*"))
	for _, p := range append([]string{r.Appliance.Log}, logs...) {
		if b, err := os.ReadFile(p); err == nil {
			t.Logf("%s:\n%s", p, b[max(0, len(b)-4000):])
		}
	}
}
