// Package lab is a provisioning LAN in one process: a network namespace with a
// bridge, virtual machines on it (QEMU, power cut and all), and real clients in
// namespaces of their own. Tests and `make demo` share it.
//
// Everything a Lab starts lives inside its namespaces. That is how it is found
// again and ended, by Close, by Clean from another process, or by a watchdog
// when the process that made the lab dies without closing it.
package lab
