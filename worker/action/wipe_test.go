package action

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

func TestWipeQuick(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 80 * mib})
	r := mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{})
	b, err := os.ReadFile(filepath.Join(env.Sys.Dev, "sda"))
	if err != nil {
		t.Fatal(err)
	}
	var areas int64
	for _, e := range merge(signatures(extent{0, 80 * mib}), 80*mib, 512) {
		areas += e.length
		if n := firstNonZero(b[e.offset:e.end()]); n >= 0 {
			t.Errorf("%v is not zero at %d", e, n)
		}
	}
	if r.WrittenBytes != areas || !strings.HasSuffix(r.Disk, "/sda") {
		t.Errorf("%+v", r)
	}
	if b[30*mib] != 0xff {
		t.Error("a quick wipe without discard wrote elsewhere")
	}
}

func TestWipeZeroOfAllDisks(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 9 * mib}, fakeDisk{name: "sdb", size: 7*mib + 512},
		fakeDisk{"sdc", mib, map[string]string{"removable": "1"}})
	var last Progress
	env.Progress = func(p Progress) { last = p }
	r := mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: "all", Mode: "zero"})
	if r.WrittenBytes != 16*mib+512 || last.Done != last.Total || last.Total != 7*mib+512 {
		t.Errorf("%+v, %+v", r, last)
	}
	for name, zero := range map[string]bool{"sda": true, "sdb": true, "sdc": false} {
		b, err := os.ReadFile(filepath.Join(env.Sys.Dev, name))
		if err != nil || (firstNonZero(b) < 0) != zero {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWipeCancelled(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 9 * mib})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, mode := range []string{"quick", "zero"} {
		if _, err := act(t, ctx, env, workflow.KindDiskWipe, &workflow.DiskWipe{Mode: mode}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// A disk that keeps what it had must not pass for wiped.
func TestCheckZeroFindsRemains(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 2 * mib})
	dev, err := openDevice(filepath.Join(env.Sys.Dev, "sda"))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if err := dev.zero(extent{0, mib}); err != nil {
		t.Fatal(err)
	}
	if err := dev.checkZero([]extent{{0, mib}}); err != nil {
		t.Error(err)
	}
	if err := dev.checkZero([]extent{{0, mib + 512}}); err == nil || !strings.Contains(err.Error(), "byte 1048576") {
		t.Errorf("got %v", err)
	}
}

// On a real block device: partitions with file systems go, and the kernel
// forgets them.
func TestWipeLoop(t *testing.T) {
	path, env := loopDisk(t, 256*mib)
	for _, mode := range []string{"quick", "zero"} {
		run(t, "sgdisk", "-n1:10M:+90M", "-n2:110M:+100M", path)
		run(t, "mkfs.ext4", "-q", "-F", "-E", "offset=10485760", path, "90M")
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		// What btrfs, md 1.0 and LVM would have left in the second partition.
		marks := []int64{110 * mib, 110*mib + 65536, 174 * mib, 210*mib - 8192}
		for _, at := range marks {
			if _, err := f.WriteAt(bytes.Repeat([]byte{0xaa}, 4096), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		f.Close()
		run(t, "partprobe", path)
		r := mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.Disk(path), Mode: mode})
		if r.WrittenBytes == 0 || r.Disk != path {
			t.Errorf("%+v", r)
		}
		if out := run(t, "wipefs", path); out != "" {
			t.Errorf("%s left signatures:\n%s", mode, out)
		}
		dev, err := openReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range append(marks, 10*mib+0x400) {
			b := make([]byte, 4096)
			if _, err := dev.ReadAt(b, at); err != nil || firstNonZero(b) >= 0 {
				t.Errorf("%s left something at %d: %v", mode, at, err)
			}
		}
		dev.Close()
		if left, _ := filepath.Glob("/sys/block/" + filepath.Base(path) + "/*/partition"); len(left) > 0 {
			t.Errorf("%s: the kernel still has %v", mode, left)
		}
	}
}
