package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
)

// roomy is the size of the daemon's file system while there is space: of less than
// 512 MiB none is given to images.
const roomy = 700 << 20

// TestFullDisk: a daemon whose disk is full refuses images and records in words, goes
// on answering reservations, survives a kill -9 like that, and has lost nothing when
// there is space again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var data string
	r := makeRack(t, "full", func(ctx context.Context, name, dir, bin string) (*rig.Rack, error) {
		data = filepath.Join(dir, "appliance", "data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		if err := syscall.Mount("tmpfs", data, "tmpfs", 0, sized(roomy)); err != nil {
			return nil, err
		}
		t.Cleanup(func() { // after the daemon's end, which is a later cleanup
			if err := syscall.Unmount(data, 0); err != nil {
				t.Error(err)
			}
		})
		return rig.NewEmptyRack(ctx, name, dir, bin)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	o := &operator{t, ctx, r}
	c, err := r.Lab.AddVeth(ctx, "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := workDir(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	random := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b) // never fails
		return string(b)
	}
	const rack = "kind: Subnet\nmetadata: {name: lan}\nspec: {prefix: %s}\n---\nkind: Hardware\nmetadata: {name: m1}\nspec: {interfaces: [{mac: '%s', addresses: [%s]}]}\n"
	o.run("apply", "-f", write("rack.yaml", fmt.Sprintf(rack, r.Lab.Subnet(), c.MAC, netip.PrefixFrom(r.Addr(50), r.Lab.Subnet().Bits()))))
	small, large := write("small.raw", random(1<<20)), write("large.raw", random(6<<20))
	o.run("image", "add", "small", small, "--format", "raw")
	before := o.run("image", "list")

	full := used(t, data)
	if err := syscall.Mount("tmpfs", data, "tmpfs", syscall.MS_REMOUNT, sized(full)); err != nil {
		t.Fatal(err)
	}
	refused := func(said string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(said, "no space left") {
			t.Errorf("with a full disk: %v, %q", err, said)
		}
	}
	_, said, err := o.try("image", "add", "large", large, "--format", "raw")
	refused(said, err)
	for range 10 { // the daemon refuses while the client still sends; the answer must not get lost
		cmd := r.Appliance.Command(ctx, "image", "add", "large", "-", "--format", "raw")
		if cmd.Stdin, err = os.Open(large); err != nil {
			t.Fatal(err)
		}
		b, err := cmd.CombinedOutput()
		refused(string(b), err)
	}
	if now := o.run("image", "list"); now != before {
		t.Errorf("the images are now\n%s\nbefore that they were\n%s", now, before)
	}
	kept := 0
	for err = nil; err == nil; kept++ { // the store's file has some free pages at first
		if kept > 6 {
			t.Fatal("the store finds space on a full disk")
		}
		notes := base64.StdEncoding.EncodeToString([]byte(random(100 << (2 * kept))))
		_, said, err = o.try("apply", "-f", write("more.yaml", fmt.Sprintf("kind: Hardware\nmetadata: {name: x%d}\nspec: {interfaces: [{mac: '02:00:00:00:00:%02x'}], userData: %q}\n", kept, kept, notes)))
	}
	kept--
	refused(said, err)

	address := func() {
		t.Helper()
		out, err := c.Command(ctx, "udhcpc", "-i", lab.ClientIface, "-f", "-n", "-q", "-t", "5", "-s", "/bin/true",
			"-V", "PXEClient:Arch:00000:UNDI:002001", "-x", "0x5d:0000").CombinedOutput()
		if want := "lease of " + r.Addr(50).String(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("DHCP on a full disk: %v\n%s", err, out)
		}
	}
	address()
	if err := r.Appliance.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Appliance.Start(ctx); err != nil {
		t.Fatal(err)
	}
	address()
	o.run("explain", "m1")

	if err := syscall.Mount("tmpfs", data, "tmpfs", syscall.MS_REMOUNT, sized(roomy)); err != nil {
		t.Fatal(err)
	}
	o.run("image", "add", "large", large, "--format", "raw")
	if list := strings.Fields(o.run("hardware", "list", "-o", "wide")); !strings.Contains(strings.Join(list, " "), fmt.Sprintf("x%d ", kept-1)) {
		t.Errorf("of %d records that were accepted the last is not there: %s", kept, list)
	}
	o.run("apply", "-f", filepath.Join(dir, "more.yaml")) // the one that was refused
	o.run("backup", filepath.Join(dir, "rack.tar.zst"))   // reads all of it, and checks it
	address()
}

// sized are the options of a tmpfs of that many bytes.
func sized(bytes int64) string { return fmt.Sprintf("size=%d,mode=0700", bytes) }

// used is how many bytes of a file system are taken.
func used(t *testing.T, path string) int64 {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}
