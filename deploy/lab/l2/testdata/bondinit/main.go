// Command bondinit is the init of a machine whose two network cards are a bond of mode
// 802.3ad. Over the bond it broadcasts what the kernel's LACP knows of its partner,
// and the last text that it was sent.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/worker/pid1/module"
)

const (
	bond = "/sys/class/net/bond0/bonding"
	port = 4242
)

func main() {
	if err := run(); err != nil {
		fmt.Println("bondinit:", err)
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

func run() error {
	if err := (pid1.Mount{Type: "sysfs", Target: "/sys"}).Create(); err != nil {
		return err
	}
	loader, err := module.OpenLoader("/lib/modules")
	if err != nil {
		return err
	}
	plugger := module.NewPlugger(loader, func(err error) { fmt.Println(err) })
	for !exists("eth0") || !exists("eth1") { // devices show others once they have a driver
		plugger.Coldplug("/sys/devices")
		plugger.Settle(context.Background(), 100*time.Millisecond)
	}
	if err := loader.Load("bonding"); err != nil {
		return err
	}
	if !exists("bond0") {
		if err := write("/sys/class/net/bonding_masters", "+bond0"); err != nil {
			return err
		}
	}
	// The cards must be down, and the mode comes before them
	// (Documentation/networking/bonding.rst, 3.4).
	for _, w := range [][2]string{{"mode", "802.3ad"}, {"lacp_rate", "fast"}, {"miimon", "100"}, {"slaves", "+eth0"}, {"slaves", "+eth1"}} {
		if err := write(filepath.Join(bond, w[0]), w[1]); err != nil {
			return err
		}
	}
	if err := up("bond0", [4]byte{10, 99, 0, 2}); err != nil {
		return err
	}
	return talk()
}

func exists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

func write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		return fmt.Errorf("%s to %s: %w", text, path, err)
	}
	return nil
}

// up gives an interface an address of a /8, as the kernel takes it for this one, and
// brings it up.
func up(name string, addr [4]byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := req.SetInet4Addr(addr[:]); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, req); err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// talk never returns but with an error.
func talk() error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
	if err != nil {
		return err
	}
	heard := make(chan string)
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := c.ReadFromUDP(buf)
			if err == nil && from.IP.String() != "10.99.0.2" {
				heard <- string(buf[:n])
			}
		}
	}()
	last := "nothing"
	for every := time.Tick(200 * time.Millisecond); ; {
		select {
		case last = <-heard:
		case <-every:
			text := fmt.Sprintf("partner %s, ports %s, heard %s", read("ad_partner_mac"), read("ad_num_ports"), last)
			_, err := c.WriteToUDP([]byte(text), &net.UDPAddr{IP: net.IPv4(10, 255, 255, 255), Port: port})
			if err != nil {
				fmt.Println(err)
			}
		}
	}
}

func read(name string) string {
	b, err := os.ReadFile(filepath.Join(bond, name))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
