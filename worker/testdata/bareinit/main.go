// Command bareinit is the smallest Go init: it prints the time since the kernel's
// start and switches the machine off. The worker's own time is compared with it.
package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func main() {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("bare init after %d ms\n", ts.Nano()/1e6)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}
