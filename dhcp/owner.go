package dhcp

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portOwner names the process that holds a UDP port, as far as /proc shows it.
func portOwner(port uint16) string {
	inodes := udpInodes(port)
	if len(inodes) == 0 {
		return "another process"
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && inodes[target] {
			pid := strings.Split(fd, "/")[2]
			comm, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			return fmt.Sprintf("pid %s (%s)", pid, strings.TrimSpace(string(comm)))
		}
	}
	return "another process"
}

// udpInodes lists the sockets on a UDP port of this network namespace, as the
// links in /proc/PID/fd name them (proc_net_udp(5): field 2 is the local address
// in hex, field 10 the inode).
func udpInodes(port uint16) map[string]bool {
	f, err := os.Open("/proc/thread-self/net/udp")
	if err != nil {
		return nil
	}
	defer f.Close()
	out := map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) < 10 {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && uint16(n) == port {
			out["socket:["+fields[9]+"]"] = true
		}
	}
	return out
}

// interfaceNames lists what is there, for errors.
func interfaceNames() string {
	var names []string
	all, _ := net.Interfaces()
	for _, i := range all {
		if len(i.HardwareAddr) == 6 {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
