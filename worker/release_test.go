package worker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tool runs a program that the test needs.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		need(t, "%v", err)
	}
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// releaseDisks makes the five disks of TestMachineReleases, all full: vda, on which
// a mapping is built; vdb and vdc, a RAID with a mapping on top; vdd, which takes
// every discard and keeps the data; vde, with a FAT file system labelled OEM.
func releaseDisks(t *testing.T) (files, args []string) {
	t.Helper()
	dir := t.TempDir()
	for i, discard := range []string{"unmap", "unmap", "unmap", "ignore", "unmap"} {
		file := filepath.Join(dir, fmt.Sprintf("disk%d", i))
		content := bytes.Repeat([]byte{0xaa}, 64<<20)
		if i == 4 {
			content = make([]byte, 128<<20)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		args = append(args,
			"-drive", fmt.Sprintf("if=none,id=d%d,format=raw,file=%s,discard=%s", i, file, discard),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=d%d,serial=DISK%d,discard=on,write-zeroes=on", i, i))
	}
	tool(t, "sgdisk", "-n1:1M:+20M", "-c1:OEM", files[4])
	tool(t, "mkfs.vfat", "-n", "OEM", "--offset", "2048", files[4], "20480")
	return files, args
}

// TestMachineReleases runs the actions of a release, and those whose file systems
// not every kernel has, in the worker's own kernel with its own modules: arrays and
// mappings are taken apart, and a disk that lies about its discard is found out.
func TestMachineReleases(t *testing.T) {
	kernel, base := assets(t)
	files, args := releaseDisks(t)
	g := bootBare(t, kernel, withInit(t, base, "./testdata/stacks"), "console=ttyS0,115200 quiet", args...)
	g.leaves(t)
	out := g.text()
	// The kernel names disks in the order in which they happen to answer: what is wanted
	// as <4> is the path of the one with the serial DISK4.
	var paths []string
	for i := range files {
		m := regexp.MustCompile(fmt.Sprintf(`stacks: DISK%d is (/dev/vd[a-z])`, i)).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("the machine does not say which disk is DISK%d", i)
		}
		paths = append(paths, fmt.Sprintf("<%d>", i), m[1])
	}
	for _, want := range []string{
		"stacks: md or dm was loaded by itself: false <nil>",
		`stacks: <4>1 config.ign "{\"ignition\":{\"version\":\"3.4.0\"}} " <nil>`,
		`stacks: <4>2 user-data "machine: {}\r\n" <nil>`,
		`stacks: <4>2 meta-data "instance-id: i-1\n" <nil>`,
		// The quick wipe refuses what is in use, as before.
		"stacks: disk.wipe  wiped=null err=disk <1> is in use by md0",
		"device=md0", "device=dm-0", "device=dm-1",
		`{"path":"<0>","serial":"DISK0","bytes":67108864,"method":"discard","verified":67108864}`,
		`{"path":"<1>","serial":"DISK1","bytes":67108864,"method":"discard","verified":67108864}`,
		`{"path":"<2>","serial":"DISK2","bytes":67108864,"method":"discard","verified":67108864}`,
		`{"path":"<3>","serial":"DISK3","bytes":67108864,"method":"overwrite","verified":67108864}`,
		`{"path":"<4>","serial":"DISK4","bytes":134217728,"method":"discard","verified":134217728}`,
		"stacks: disk.wipe wiped and verified ",
		`msg="the disk is not clean after that" disk=<3> method=discard error="disk <3> does not read zero at byte 0 after it was wiped"`,
		"stacks: done",
	} {
		if want = strings.NewReplacer(paths...).Replace(want); !strings.Contains(out, want) {
			t.Errorf("the machine does not say %q", want)
		}
	}
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || len(bytes.Trim(b, "\x00")) > 0 {
			t.Errorf("disk %d is not clean: %v", i, err)
		}
	}
}
