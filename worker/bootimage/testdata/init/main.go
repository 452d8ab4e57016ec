// Command init is the smallest worker: PID 1 of a machine that only shows that
// its kernel, modules and initramfs parts fit together. It prints lines that
// the test looks for and powers the machine off.
package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(); err != nil {
		fmt.Println("init: FAILED:", err)
	}
	fmt.Println("init: done")
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("init: power off:", err)
	}
	select {} // the kernel panics when PID 1 ends
}

func run() error {
	for _, m := range []struct{ dir, kind string }{{"/proc", "proc"}, {"/sys", "sysfs"}, {"/dev", "devtmpfs"}} {
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return err
	}
	fmt.Println("init: uptime", strings.Fields(string(uptime))[0])
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	dir := path.Join("/lib/modules", unix.ByteSliceToString(name.Release[:]))
	dep, err := os.ReadFile(path.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	for _, module := range []string{"virtio_pci", "virtio_net", "nvme", "crc32c_generic", "ext4", "vfat"} {
		if err := load(dir, string(dep), module); err != nil {
			return err
		}
	}
	links, err := filepath.Glob("/sys/class/net/e*")
	fmt.Println("init: links", links, err)
	extra, err := filepath.Glob("/extra-*")
	fmt.Println("init: extra", extra, err)
	meminfo, err := os.ReadFile("/proc/meminfo")
	fmt.Println("init: memory", strings.Join(strings.Fields(string(meminfo))[:8], " "), err)
	return nil
}

// load loads a module after those that modules.dep names, the last first.
func load(dir, dep, name string) error {
	for line := range strings.Lines(dep) {
		files := strings.Fields(strings.Replace(line, ":", "", 1))
		if strings.TrimSuffix(path.Base(files[0]), ".ko") != name {
			continue
		}
		for i := len(files) - 1; i >= 0; i-- {
			if err := insert(path.Join(dir, files[i])); err != nil {
				return fmt.Errorf("load %s: %w", files[i], err)
			}
		}
		fmt.Println("init: loaded", name)
		return nil
	}
	return fmt.Errorf("module %s is not in modules.dep", name)
}

func insert(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return err
	}
	return nil
}
