package main

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// onlyInterface is the one Ethernet interface on which DHCP can be meant: up, not
// loopback, with an IPv4 address. With none or several it refuses to guess.
func onlyInterface() (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	var names []string
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 || len(i.HardwareAddr) != 6 {
			continue
		}
		if ip := firstIPv4(i); ip != "" {
			names = append(names, i.Name+" ("+ip+")")
		}
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("no interface is up and has an IPv4 address (configure one, or name it in `interfaces` of %s)", defaultConfigPath)
	case 1:
		name, _, _ := strings.Cut(names[0], " ")
		return name, nil
	}
	return "", fmt.Errorf("which of these is the provisioning LAN: %s? (name it in `interfaces` of %s)", strings.Join(names, ", "), defaultConfigPath)
}

func firstIPv4(i net.Interface) string {
	addrs, err := i.Addrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.String()
		}
	}
	return ""
}

// listenUnix makes the REST socket: root's only, and a leftover of a daemon that
// was killed is replaced, but not one that still answers.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("%s: another rackstrap answers on it (stop it, or set `socket` and `data` to other paths)", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}
