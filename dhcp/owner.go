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
	owner, _ := PortOwner("udp", port)
	if owner == "" {
		return "another process"
	}
	return owner
}

// PortOwner names the process that holds a port of this network namespace, udp or, where
// it listens, tcp: pid 812 (dnsmasq). It is empty where /proc does not show it; taken
// reports whether somebody has the port.
func PortOwner(network string, port uint16) (owner string, taken bool) {
	inodes := map[string]bool{}
	for _, table := range []string{network, network + "6"} {
		addInodes(inodes, table, port)
	}
	if len(inodes) == 0 {
		return "", false
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && inodes[target] {
			pid := strings.Split(fd, "/")[2]
			comm, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			return fmt.Sprintf("pid %s (%s)", pid, strings.TrimSpace(string(comm))), true
		}
	}
	return "", true
}

// tcpListen is the state of a TCP socket that listens (proc_net_tcp(5)).
const tcpListen = "0A"

// addInodes adds the sockets on a port, as the links in /proc/PID/fd name them
// (proc_net_udp(5): field 2 is the local address in hex, field 4 the state, field 10 the
// inode).
func addInodes(out map[string]bool, table string, port uint16) {
	f, err := os.Open("/proc/thread-self/net/" + table)
	if err != nil {
		return
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) < 10 || (strings.HasPrefix(table, "tcp") && fields[3] != tcpListen) {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && uint16(n) == port {
			out["socket:["+fields[9]+"]"] = true
		}
	}
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
