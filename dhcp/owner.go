package dhcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// portOwner names the processes that hold a UDP port, as far as /proc shows them.
func portOwner(port uint16) string {
	owners := slices.DeleteFunc(PortOwners("udp", port), func(o string) bool { return o == "" })
	if len(owners) == 0 {
		return "another process"
	}
	return strings.Join(owners, " or ")
}

// PortOwners names the processes that hold a port of this network namespace, at whatever
// address and interface, udp or, where it listens, tcp: pid 812 (dnsmasq). An empty name
// stands for those that /proc does not show.
func PortOwners(network string, port uint16) []string {
	inodes := map[string]bool{} // and whether /proc shows who has it
	for _, table := range []string{network, network + "6"} {
		addInodes(inodes, table, port)
	}
	if len(inodes) == 0 {
		return nil
	}
	var owners []string
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if _, ok := inodes[target]; err != nil || !ok {
			continue
		}
		inodes[target] = true
		pid := strings.Split(fd, "/")[2]
		comm, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
		if o := fmt.Sprintf("pid %s (%s)", pid, strings.TrimSpace(string(comm))); !slices.Contains(owners, o) {
			owners = append(owners, o)
		}
	}
	for _, shown := range inodes {
		if !shown {
			return append(owners, "")
		}
	}
	return owners
}

// InUse reports whether the daemon could not open a UDP port on an interface, because
// somebody has it there too. It opens the port for a moment.
func InUse(ctx context.Context, name string, port uint16) bool {
	conn, err := listen(ctx, name, port)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, errInUse)
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
			out["socket:["+fields[9]+"]"] = false
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
