package action

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/worker/action/efiboot"
	"github.com/rackstrap/rackstrap/workflow"
)

// uefi gives the machine a firmware with one variable.
func uefi(t *testing.T, env Env) Env {
	t.Helper()
	env.Sys.EFI = t.TempDir()
	dir := filepath.Join(env.Sys.EFI, "efivars")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "BootCurrent-8be4df61-93ca-11d2-aa0d-00e098032b8c"), []byte("\x06\x00\x00\x00\x01\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	return env
}

// variable reads one; empty when it is not there.
func variable(env Env, name string) []byte {
	b, _ := os.ReadFile(filepath.Join(env.Sys.EFI, "efivars", name+"-8be4df61-93ca-11d2-aa0d-00e098032b8c"))
	return b
}

// bootableDisk makes a disk with a system partition for every number, which has a
// boot loader or not. The file system is ext4: not every kernel that tests run on
// has FAT.
func bootableDisk(t *testing.T, loader map[string]bool) string {
	t.Helper()
	path, _ := loopDisk(t, 64*mib)
	root := t.TempDir()
	file := filepath.Join(root, strings.ReplaceAll(loaders[runtime.GOARCH], `\`, "/"))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("MZ"), 0o644); err != nil {
		t.Fatal(err)
	}
	for number := range loader {
		run(t, "sgdisk", "-n"+number+":0:+8M", "-t"+number+":ef00", "-u"+number+":00112233-4455-6677-8899-AABBCCDDEEF"+number, path)
	}
	run(t, "sgdisk", "-n9:0:+8M", path) // holds the file, but is no system partition
	run(t, "partprobe", path)
	run(t, "mkfs.ext4", "-q", "-F", "-d", root, path+"p9")
	for number, has := range loader {
		from := root
		if !has {
			from = t.TempDir()
		}
		run(t, "mkfs.ext4", "-q", "-F", "-d", from, path+"p"+number)
	}
	return path
}

func restart(t *testing.T, h *history, env Env) string {
	t.Helper()
	r, err := h.reboot(t.Context(), env, workflow.Reboot{})
	if err != nil || r.After != Reboot {
		t.Errorf("%+v, %v", r, err)
	}
	return r.Message
}

func TestRebootBootsTheDisk(t *testing.T) {
	path := bootableDisk(t, map[string]bool{"1": false, "2": true})
	env := uefi(t, Env{Log: newTestLogger(t.Output()), Sys: Sys{Mount: t.TempDir()}})
	h := new(history)
	h.add(workflow.KindImageWrite, path)
	for range 2 {
		if got, want := restart(t, h, env), "the machine restarts; the firmware boots "+path+"p2 next (Boot2A00)"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := variable(env, "BootNext"); !bytes.Equal(got, []byte{7, 0, 0, 0, 0, 0x2a}) {
		t.Errorf("BootNext %x", got)
	}
	b := variable(env, "Boot2A00")
	if len(b) < 4 {
		t.Fatalf("Boot2A00 %x", b)
	}
	o, err := efiboot.Decode(b[4:])
	if err != nil {
		t.Fatal(err)
	}
	p, _ := o.Paths[0][0].Partition()
	file, _ := o.Paths[0][1].File()
	infos, err := partitions(disk{path: path, sys: "/sys/block/" + filepath.Base(path)})
	if err != nil {
		t.Fatal(err)
	}
	want := efiboot.Partition{
		Number: 2, Start: uint64(infos[1].start / 512), Size: uint64(infos[1].size / 512),
		GUID: [16]byte{0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xf2},
	}
	if p != want || file != loaders[runtime.GOARCH] || variable(env, "Boot2A01") != nil {
		t.Errorf("%+v, want %+v, %q", p, want, file)
	}
}

// Whatever is missing, the machine restarts, and the message says why the firmware
// was told nothing.
func TestRebootWithoutBootNext(t *testing.T) {
	one, two := bootableDisk(t, map[string]bool{"1": true}), bootableDisk(t, map[string]bool{"1": true})
	none := bootableDisk(t, map[string]bool{"1": false})
	both := bootableDisk(t, map[string]bool{"1": true, "2": true})
	empty, _ := loopDisk(t, 8*mib)
	for _, tt := range []struct {
		name    string
		written string
		wiped   string
		want    string
	}{
		{"two disks", one + "," + two, "", "p1 both have "},
		{"two partitions", both, "", "refusing to guess"},
		{"no boot loader", none, "", "no EFI system partition with "},
		{"no partition table", empty, "", "no EFI system partition with "},
		{"only wiped", "", one, " on none"},
		{"written, then wiped", one, one, " on none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := uefi(t, Env{Log: newTestLogger(t.Output()), Sys: Sys{Mount: t.TempDir()}})
			h := new(history)
			h.add(workflow.KindImageWrite, tt.written)
			h.add(workflow.KindDiskWipe, tt.wiped)
			got := restart(t, h, env)
			if !strings.HasPrefix(got, "the machine restarts; the firmware follows its own boot order: ") || !strings.Contains(got, tt.want) {
				t.Errorf("%q", got)
			}
			if b := variable(env, "BootNext"); b != nil {
				t.Errorf("BootNext %x", b)
			}
		})
	}
}

// A worker that was started again in the middle looks at every disk of the machine.
func TestRebootOfAnotherWorker(t *testing.T) {
	path := bootableDisk(t, map[string]bool{"1": true})
	env := uefi(t, fakeMachine(t, fakeDisk{name: "sda", size: mib}))
	name := filepath.Base(path)
	for link, to := range map[string]string{
		env.Sys.Block + "/vda": "/sys/block/" + name, env.Sys.Dev + "/vda": path, env.Sys.Dev + "/" + name + "p1": path + "p1",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if got := restart(t, new(history), env); !strings.HasSuffix(got, "p1 next (Boot2A00)") {
		t.Error(got)
	}
}

func TestRebootOfABIOSMachine(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t)
	env.Sys.EFI = t.TempDir() + "/none"
	if got := mustAct(t, env, workflow.KindReboot, &workflow.Reboot{}); got.Message != "the machine restarts" || got.After != Reboot {
		t.Errorf("%+v", got)
	}
}

// The runners of one boot share what they did.
func TestRunnersRememberTheDisk(t *testing.T) {
	t.Parallel()
	env := uefi(t, fakeMachine(t, fakeDisk{name: "sda", size: 8 * mib}))
	runners := Runners()
	r, err := runners[workflow.KindReboot].Run(t.Context(), env, []byte("{}"))
	if err != nil || !strings.Contains(r.Message, "/sda (") {
		t.Errorf("before: %q, %v", r.Message, err)
	}
	if _, err := runners[workflow.KindDiskWipe].Run(t.Context(), env, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	r, err = runners[workflow.KindReboot].Run(t.Context(), env, []byte("{}"))
	if err != nil || !strings.HasSuffix(r.Message, " on none") {
		t.Errorf("after: %q, %v", r.Message, err)
	}
}

// What a system partition is formatted with is seen, whatever its size.
func TestIdentifyFAT(t *testing.T) {
	t.Parallel()
	for _, bits := range []string{"12", "16", "32"} {
		path := filepath.Join(t.TempDir(), "fat"+bits)
		run(t, "mkfs.vfat", "-C", "-F", bits, "-s", "1", "-n", "ESP"+bits, path, map[string]string{"12": "1024", "16": "8192", "32": "65536"}[bits])
		if fs, err := identifyPath(path); err != nil || fs.kind != "vfat" || fs.label != "ESP"+bits {
			t.Errorf("FAT%s: %+v, %v", bits, fs, err)
		}
	}
}
