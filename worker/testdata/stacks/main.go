// Command stacks is an init that builds a RAID and mappings on the machine's disks,
// as a kernel with autodetection would have, and then runs the worker's own actions
// on them. It prints what came of it, a line each, for the test to read.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/worker/pid1/module"
	"github.com/rackstrap/rackstrap/workflow"
)

func main() {
	if err := run(); err != nil {
		fmt.Println("stacks: FAILED:", err)
	}
	fmt.Println("stacks: done")
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

func run() error {
	if err := pid1.CreateAll(pid1.Required()); err != nil {
		return err
	}
	loader, err := module.OpenLoader("/lib/modules")
	if err != nil {
		return err
	}
	plugger := module.NewPlugger(loader, func(err error) { fmt.Println("stacks: module:", err) })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events, err := module.ListenUevents()
	if err != nil {
		return err
	}
	again := func() { plugger.Coldplug("/sys/devices") }
	go func() { _ = events.Run(ctx, func(e module.Uevent) { plug(plugger, e) }, again) }()
	again()
	var disk []string
	plugger.Until(ctx, func() bool {
		disk = disks()
		_, err := os.Stat(disk[4] + "1")
		return err == nil && !slices.Contains(disk, "")
	})
	plugger.Settle(ctx, time.Second)
	for i, path := range disk {
		fmt.Printf("stacks: DISK%d is %s\n", i, path)
	}
	// What the worker finds: nothing has been built by itself.
	modules, err := os.ReadFile("/proc/modules")
	fmt.Println("stacks: md or dm was loaded by itself:", strings.Contains(string(modules), "md_mod ") || strings.Contains(string(modules), "dm_mod "), err)

	env := action.Env{Log: slog.New(slog.NewTextHandler(os.Stdout, nil)), LoadModule: loader.Load}
	act(env, workflow.KindIgnition, &workflow.Ignition{Disk: workflow.Disk(disk[4]), Config: `{"ignition":{"version":"3.4.0"}} `})
	act(env, workflow.KindSeedPartition, &workflow.SeedPartition{Disk: workflow.Disk(disk[4]), UserData: "machine: {}\r\n", MetaData: "instance-id: i-1\n"})
	for _, f := range []struct{ part, name string }{{disk[4] + "1", "config.ign"}, {disk[4] + "2", "user-data"}, {disk[4] + "2", "meta-data"}} {
		b, err := readFAT(f.part, f.name)
		fmt.Printf("stacks: %s %s %q %v\n", f.part, f.name, b, err)
	}

	for _, m := range []string{"md_mod", "raid1", "dm_mod"} {
		if err := loader.Load(m); err != nil {
			return err
		}
	}
	if err := mirror(disk[1], disk[2]); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	for name, below := range map[string]string{"one": disk[0], "top": "/dev/md0"} {
		if err := mapLinear(name, below, 1000); err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
	}
	act(env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.Disk(disk[1])})
	act(env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.DiskAll, Mode: workflow.WipeVerified})
	return nil
}

// disks are the paths of the disks with the serials DISK0 to DISK4, empty where one is
// not there yet: the kernel names them in the order in which they happen to answer.
func disks() []string {
	out := make([]string, 5)
	for c := 'a'; c <= 'z'; c++ {
		serial, err := os.ReadFile("/sys/block/vd" + string(c) + "/serial")
		if err != nil {
			continue
		}
		if i := slices.Index([]string{"DISK0", "DISK1", "DISK2", "DISK3", "DISK4"}, strings.TrimSpace(string(serial))); i >= 0 {
			out[i] = "/dev/vd" + string(c)
		}
	}
	return out
}

func plug(p *module.Plugger, e module.Uevent) {
	if a := e.Vars["MODALIAS"]; a != "" {
		p.Plug(a)
	}
	p.Touch()
}

func act(env action.Env, kind workflow.Kind, o workflow.Options) {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	r, err := action.Runners()[kind].Run(context.Background(), env, b)
	out, _ := json.Marshal(r.Wiped)
	fmt.Printf("stacks: %s %s wiped=%s err=%v\n", kind, r.Message, out, err)
}

func readFAT(part, name string) ([]byte, error) {
	if err := os.MkdirAll("/look", 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount(part, "/look", "vfat", unix.MS_RDONLY, ""); err != nil {
		return nil, err
	}
	defer func() { _ = unix.Unmount("/look", 0) }()
	return os.ReadFile("/look/" + name)
}

// mirror builds a RAID 1 without a superblock, md0.
func mirror(disks ...string) error {
	if err := os.WriteFile("/sys/module/md_mod/parameters/new_array", []byte("md0"), 0); err != nil {
		return err
	}
	f, err := os.OpenFile("/dev/md0", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	// mdu_array_info_t: version 0.90, level 1, 65536 KiB, two disks, no superblock, clean.
	if err := ioctl(f, 0x40480923, [18]int32{0: 0, 1: 90, 4: 1, 5: 65536, 6: 2, 7: 2, 9: 1, 11: 1, 12: 2, 13: 2}); err != nil {
		return err
	}
	for i, d := range disks {
		var st unix.Stat_t
		if err := unix.Stat(d, &st); err != nil {
			return err
		}
		if err := ioctl(f, 0x40140921, [5]int32{int32(i), int32(unix.Major(st.Rdev)), int32(unix.Minor(st.Rdev)), int32(i), 6}); err != nil {
			return err
		}
	}
	return ioctl(f, 0x400c0930, [3]int32{})
}

// mapLinear makes a mapping of so many sectors of a device.
func mapLinear(name, below string, sectors uint64) error {
	f, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, nr := range []uintptr{3, 9, 6} { // DM_DEV_CREATE, DM_TABLE_LOAD, DM_DEV_SUSPEND (that is: resume)
		b := make([]byte, 512)
		le := binary.LittleEndian
		le.PutUint32(b[0:], 4)    // version
		le.PutUint32(b[12:], 512) // size
		le.PutUint32(b[16:], 312) // where the targets begin
		copy(b[48:], name)
		if nr == 9 {
			le.PutUint32(b[20:], 1)
			le.PutUint64(b[312+8:], sectors)
			copy(b[312+24:], "linear")
			copy(b[312+40:], below+" 0")
		}
		if err := ioctl(f, 0xc138fd00|nr, b); err != nil {
			return err
		}
	}
	return nil
}

// ioctl passes a copy of arg, which is of fixed size.
func ioctl(f *os.File, request uintptr, arg any) error {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, arg); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(&b.Bytes()[0]))); errno != 0 {
		return fmt.Errorf("%#x: %w", request, errno)
	}
	return nil
}
