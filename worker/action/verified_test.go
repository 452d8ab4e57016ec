package action

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/probe"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestWipeVerifiedOfAllDisks(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{"sda", 9 * mib, map[string]string{"device/serial": "S1"}}, fakeDisk{name: "sdb", size: 300*mib + 512},
		fakeDisk{"sdc", mib, map[string]string{"removable": "1", "ro": "1"}}, fakeDisk{name: "loop0", size: mib})
	var last Progress
	env.Progress = func(p Progress) { last = p }
	r := mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.DiskAll, Mode: workflow.WipeVerified})
	if len(r.Wiped) != 2 || r.WrittenBytes != 309*mib+512 || last.Done != last.Total || last.Total != 309*mib+512 || last.Written != last.Total {
		t.Fatalf("%+v, %+v", r, last)
	}
	a, b := r.Wiped[0], r.Wiped[1]
	if want := (hardware.WipedDisk{Path: filepath.Join(env.Sys.Dev, "sda"), Serial: "S1", Bytes: 9 * mib, Method: "overwrite", Verified: 9 * mib}); a != want {
		t.Errorf("got %+v, want %+v", a, want)
	}
	// Of the larger one, both ends and samples were read, each byte counted once.
	if b.Bytes != 300*mib+512 || b.Verified < 2*verifyEnds+64*mib || b.Verified > b.Bytes {
		t.Errorf("%+v", b)
	}
	if r.Disk != a.Path+","+b.Path || !strings.Contains(r.Message, "sda (overwrite, read ") {
		t.Errorf("%+v", r)
	}
	for name, zero := range map[string]bool{"sda": true, "sdb": true, "sdc": false, "loop0": false} {
		b, err := os.ReadFile(filepath.Join(env.Sys.Dev, name))
		if err != nil || (firstNonZero(b) < 0) != zero {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A machine with a disk that cannot be wiped is not clean; nothing is begun.
func TestWipeVerifiedRefusesReadOnly(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: mib}, fakeDisk{"sdb", mib, map[string]string{"ro": "1", "device/serial": "RO-1"}})
	r, err := act(t, t.Context(), env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.DiskAll, Mode: workflow.WipeVerified})
	if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "RO-1") || len(r.Wiped) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if b, _ := os.ReadFile(filepath.Join(env.Sys.Dev, "sda")); b[0] != 0xff {
		t.Error("the other disk was wiped")
	}
}

// What the worker reports of a machine and what it wipes are the same disks with the
// same serial numbers: the engine compares them.
func TestWipeVerifiedFitsFacts(t *testing.T) {
	t.Parallel()
	type attrs = map[string]string
	ro := attrs{"ro": "1"}
	noise := []fakeDisk{
		{"mmcblk0boot0", mib, ro},
		{"mmcblk0boot1", mib, ro},
		{"mmcblk0rpmb", mib, nil},
		{"loop0", mib, ro},
		{"ram0", mib, nil},
		{"zram0", mib, nil},
		{"md127", mib, nil},
		{"md_d0", mib, nil},
		{"dm-0", mib, nil},
		{"sr0", mib, attrs{"ro": "1", "removable": "1"}},
		{"fd0", mib, attrs{"removable": "1"}},
		{"zd0", mib, nil},
		{"nvme0c0n1", mib, attrs{"hidden": "1"}},
		{"sdx", mib, attrs{"removable": "1"}},
		{"sdy", 0, nil},
		{"sdz", 0, ro},
	}
	for _, tt := range []struct {
		name  string
		disks []fakeDisk
		wrong string
	}{
		{"eMMC", []fakeDisk{{"mmcblk0", mib, attrs{"device/serial": "0x1234"}}, {"mmcblk0gp0", mib, nil}}, ""},
		{"serial numbers", []fakeDisk{
			{"sda", mib, attrs{"device/vpd_pg80": "\x00\x80\x00\x08  ZC1ABCjunk"}},
			{"nvme0n1", mib, attrs{"device/serial": "a  b", "serial": "c"}},
			{"vda", mib, attrs{"serial": "x" + strings.Repeat(" y", 100)}},
			{"sdb", mib, attrs{"serial": "\x1b[1m\xff"}},
		}, ""},
		{"no disk", nil, ""},
		{"protected", []fakeDisk{{"sda", mib, nil}, {"sdb", mib, ro}}, "write-protected"},
		{"zoned", []fakeDisk{{"sda", mib, attrs{"queue/zoned": "host-managed"}}}, "zones"},
	} {
		env := fakeMachine(t, append(tt.disks, noise...)...)
		root := t.TempDir()
		if err := errors.Join(os.Mkdir(root+"/sys", 0o755), os.Symlink(env.Sys.Block, root+"/sys/block")); err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, d := range probe.Facts(os.DirFS(root), time.Now()).Disks {
			if !d.Removable && !d.ReadOnly && d.Bytes > 0 {
				want = append(want, strings.TrimPrefix(d.Path, "/dev/")+" "+d.Serial)
			}
		}
		r, err := act(t, t.Context(), env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.DiskAll, Mode: workflow.WipeVerified})
		if tt.wrong != "" {
			if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		for _, d := range r.Wiped {
			got = append(got, filepath.Base(d.Path)+" "+d.Serial)
		}
		if err != nil || !slices.Equal(got, want) || len(got) != len(tt.disks) {
			t.Errorf("%s: wiped %q, reported %q, %v", tt.name, got, want, err)
		}
		if len(tt.disks) == 0 && (!strings.Contains(r.Message, "no fixed disk") || r.Disk != "") {
			t.Errorf("%s: %+v", tt.name, r)
		}
		if b, _ := os.ReadFile(filepath.Join(env.Sys.Dev, "mmcblk0boot0")); len(b) != mib || b[0] != 0xff {
			t.Errorf("%s: the boot area was touched", tt.name)
		}
	}
}

func TestWipeVerifiedCancelled(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 9 * mib})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := act(t, ctx, env, workflow.KindDiskWipe, &workflow.DiskWipe{Mode: workflow.WipeVerified})
	if !errors.Is(err, context.Canceled) || len(r.Wiped) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// newEraser opens a disk of a machine for a test of single methods.
func newEraser(t *testing.T, env Env, path string) *eraser {
	t.Helper()
	d, err := env.disk(workflow.Disk(path))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := openDevice(d.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return &eraser{env: env, disk: d, dev: dev, report: func(Progress) {}}
}

// TestLiars: a method that says it is done is believed only when the disk reads
// zero. worker.TestMachineReleases has a disk that lies by itself.
func TestLiars(t *testing.T) {
	path, env := loopDisk(t, 300*mib)
	mark := func(at int64) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xaa}, 64<<10), at); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	does := func(e *eraser) func(extent) error { return e.dev.writeZeros }
	nothing := func(*eraser) func(extent) error { return func(extent) error { return nil } }
	refuses := func(*eraser) func(extent) error { return func(extent) error { return unix.EOPNOTSUPP } }
	but := func(spare int64) func(*eraser) func(extent) error {
		return func(e *eraser) func(extent) error {
			return func(x extent) error {
				for at := x.offset; at < x.end(); at += mib {
					if at != spare {
						if err := e.dev.writeZeros(extent{at, mib}); err != nil {
							return err
						}
					}
				}
				return nil
			}
		}
	}
	const inside = 151 * mib
	for _, tt := range []struct {
		name   string
		marks  []int64
		all    []func(*eraser) func(extent) error
		proof  string
		remain string
	}{
		{"honest discard", []int64{0, inside}, []func(*eraser) func(extent) error{does, nothing}, "discard", ""},
		{"discard does nothing", []int64{0}, []func(*eraser) func(extent) error{nothing, does}, "overwrite", ""},
		{"no discard", []int64{0}, []func(*eraser) func(extent) error{refuses, does}, "overwrite", ""},
		{"the end is left", []int64{299 * mib}, []func(*eraser) func(extent) error{but(299 * mib), does}, "overwrite", ""},
		{"all lie", []int64{2 * mib}, []func(*eraser) func(extent) error{nothing, nothing, nothing}, "", "byte 2097152"},
		{"the last end lies", []int64{300*mib - 65536}, []func(*eraser) func(extent) error{nothing, but(299 * mib)}, "", "byte 314507264"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEraser(t, env, path)
			if err := e.dev.writeZeros(extent{0, e.dev.size}); err != nil {
				t.Fatal(err)
			}
			for _, at := range tt.marks {
				mark(at)
			}
			var all []method
			for i, make := range tt.all {
				m := method{hardware.WipedByOverwrite, "overwrite", zeroStep, make(e)}
				if i == 0 {
					m.proof, m.note = hardware.WipedByDiscard, "discard"
				}
				all = append(all, m)
			}
			proof, err := e.erase(t.Context(), all)
			if tt.remain != "" {
				if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), tt.remain) || !strings.Contains(err.Error(), path) {
					t.Errorf("%+v, %v, want %q", proof, err, tt.remain)
				}
				return
			}
			if err != nil || proof.Method != tt.proof || proof.Path != path || proof.Bytes != 300*mib || proof.Verified < 80*mib {
				t.Errorf("%+v, %v", proof, err)
			}
		})
	}
}

// What was seen before a wipe is read again after it, and where a partition had its
// superblock.
func TestLittleRemains(t *testing.T) {
	path, env := loopDisk(t, 300*mib)
	run(t, "sgdisk", "-n1:151M:+90M", path)
	run(t, "mkfs.ext4", "-q", "-F", "-E", "offset=158334976", path, "90M")
	run(t, "partprobe", path)
	e := newEraser(t, env, path)
	// A discard that keeps four sectors: the superblock of the file system.
	keep := extent{151*mib + 1024, 2048}
	lie := method{hardware.WipedByDiscard, "discard", zeroStep, func(x extent) error {
		if err := e.dev.writeZeros(extent{x.offset, min(keep.offset, x.end()) - x.offset}); x.end() <= keep.offset || err != nil {
			return err
		}
		return e.dev.writeZeros(extent{max(keep.end(), x.offset), x.end() - max(keep.end(), x.offset)})
	}}
	_, err := e.erase(t.Context(), []method{{lie.proof, lie.note, 300 * mib, lie.erase}})
	if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "byte 15833600") {
		t.Errorf("got %v", err)
	}
}

// A real block device whose driver really discards.
func TestWipeVerifiedLoop(t *testing.T) {
	path, env := loopDisk(t, 512*mib)
	run(t, "sgdisk", "-n1:10M:+90M", "-n2:110M:+300M", path)
	run(t, "mkfs.ext4", "-q", "-F", "-E", "offset=10485760", path, "90M")
	run(t, "partprobe", path)
	r := mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.Disk(path), Mode: workflow.WipeVerified})
	if len(r.Wiped) != 1 || r.Wiped[0].Bytes != 512*mib || r.Wiped[0].Verified < 32*mib {
		t.Errorf("%+v", r)
	}
	if max := attr("/sys/block/"+filepath.Base(path), "queue/discard_max_bytes"); max != "0" && r.Wiped[0].Method != "discard" {
		t.Errorf("the disk can discard up to %s: %+v", max, r.Wiped[0])
	}
	if out := run(t, "wipefs", path); out != "" {
		t.Errorf("left signatures:\n%s", out)
	}
	if left, _ := filepath.Glob("/sys/block/" + filepath.Base(path) + "/*/partition"); len(left) > 0 {
		t.Errorf("the kernel still has %v", left)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{512, 64 << 10, 100 * mib, 1 << 40} {
		all := spread(size, verifyTimes)
		last := int64(-1)
		for _, e := range all {
			if e.offset < last || e.offset >= size {
				t.Fatalf("%d: sample at %d after one at %d", size, e.offset, last)
			}
			last = e.offset
		}
		if len(all) != verifyTimes || size > 1<<30 && last < size/verifyTimes*(verifyTimes-1) {
			t.Errorf("%d: %d samples, the last at %d", size, len(all), last)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	var seen []Progress
	tl := newTally(Env{Progress: func(p Progress) { seen = append(seen, p) }}, []disk{{size: 10}, {size: 30}})
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { tl.disk(i)(Progress{Done: 5, Total: int64(10 + 20*i), Written: 1, Note: "x"}) })
	}
	wg.Wait()
	if len(seen) != 2 || seen[1] != (Progress{Done: 10, Total: 40, Written: 2, Note: "x"}) || seen[0].Done != 5 || seen[0].Total != 40 {
		t.Errorf("%+v", seen)
	}
}
