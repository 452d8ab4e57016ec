package action

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/worker/action/partition"
	"github.com/rackstrap/rackstrap/workflow"
)

// machineConfig is a Talos machine config whose bytes matter.
const machineConfig = "version: v1alpha1 # é\r\nmachine:\n  type: worker\n\ttab: \"$x ${y}\"\nlast: line"

// TestSeedPartition: tools of others read what was written, on a disk that is larger
// than its image; again gives the same partition with the new seed.
func TestSeedPartition(t *testing.T) {
	path, env := loopDisk(t, 256*mib)
	d := workflow.Disk(path)
	image := systemImage(t, map[string]string{"etc/os-release": "x"})
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "partprobe", path)
	o := &workflow.SeedPartition{Disk: d, UserData: machineConfig, MetaData: "instance-id: i-1\n", NetworkConfig: testNetwork}
	for i := range 3 {
		if i == 1 { // a shorter one leaves nothing of the one before
			o.UserData, o.NetworkConfig = "x", ""
		}
		r := mustAct(t, env, workflow.KindSeedPartition, o)
		if verb := []string{"added", "rewrote", "rewrote"}[i]; r.Disk != path || !strings.HasPrefix(r.Message, verb+" partition 3 of "+path) {
			t.Errorf("%+v", r)
		}
		if out := run(t, "sgdisk", "-v", path); !strings.Contains(out, "No problems found") {
			t.Errorf("sgdisk -v: %s", out)
		}
		p3 := path + "p3"
		if out := run(t, "blkid", "-p", "-o", "export", p3); !strings.Contains(out, "\nLABEL=cidata\n") || !strings.Contains(out, "TYPE=vfat") || !strings.Contains(out, "PART_ENTRY_NAME=cidata") {
			t.Errorf("blkid: %s", out)
		}
		run(t, "fsck.vfat", "-n", p3)
		raw, err := os.ReadFile(p3)
		if err != nil || i > 0 && bytes.Contains(raw, []byte("v1alpha1")) {
			t.Errorf("the seed before is still there: %v", err)
		}
		file := filepath.Join(t.TempDir(), "fs")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run(t, "mtype", "-i", file, "::user-data"); got != o.UserData {
			t.Errorf("user-data %q", got)
		}
		names := run(t, "mdir", "-b", "-i", file, "::")
		if want := "::/meta-data\n::/user-data"; names != want && names != want+"\n::/network-config" || strings.Contains(names, "network") != (i == 0) {
			t.Errorf("files %q", names)
		}
		g := mustAct(t, env, workflow.KindDiskGrow, &workflow.DiskGrow{Disk: d})
		if !strings.Contains(g.Message, "partition 2") {
			t.Errorf("%+v", g)
		}
	}
	look(t, env, d) // the root is found as before
}

func TestSeedPartitionRefuses(t *testing.T) {
	other, env := withFilesystems(t, []string{"CIDATA", "ext4 x"})
	label, _ := withFilesystems(t, []string{"x", "ext4 cidata"})
	empty, _ := loopDisk(t, 64*mib)
	for disk, says := range map[workflow.Disk]string{
		other: "partition 1 of " + string(other) + " is labelled cidata, too", label: "is labelled cidata, too",
		workflow.Disk(empty): partition.ErrNone.Error(),
	} {
		before := digest(t, string(disk))
		_, err := act(t, t.Context(), env, workflow.KindSeedPartition, &workflow.SeedPartition{Disk: disk, MetaData: "instance-id: i-1\n"})
		if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		if before != digest(t, string(disk)) {
			t.Error("the disk was written to")
		}
	}
	if _, err := act(t, t.Context(), env, workflow.KindSeedPartition, &workflow.SeedPartition{Disk: other}); err == nil || !strings.Contains(err.Error(), "metaData is empty") {
		t.Errorf("got %v", err)
	}
}

// digest is of where the tables are and where a seed would be.
func digest(t *testing.T, path string) [32]byte {
	t.Helper()
	dev, err := openReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b := make([]byte, 40*mib)
	if _, err := dev.ReadAt(b[:mib], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.ReadAt(b[mib:], dev.size-39*mib); err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}
