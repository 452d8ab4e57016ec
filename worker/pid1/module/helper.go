package module

import (
	"fmt"
	"path/filepath"
)

// Helper answers the kernel's own requests for modules. When a mount needs a file
// system, or a driver a cipher, the kernel runs the program in
// /proc/sys/kernel/modprobe as `/sbin/modprobe -q -- NAME`; that name is a link to
// the worker, which finds itself called so and loads the module. ok is false when
// args are not such a call.
func Helper(args []string, root string) (ok bool, err error) {
	if len(args) == 0 || filepath.Base(args[0]) != "modprobe" {
		return false, nil
	}
	if len(args) < 2 {
		return true, fmt.Errorf("modprobe: no module named")
	}
	l, err := OpenLoader(root)
	if err != nil {
		return true, err
	}
	return true, l.Load(args[len(args)-1])
}
