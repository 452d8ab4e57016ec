// Package l2 is an Ethernet switch in a process: its ports are the sockets of QEMU's
// network cards and TAP interfaces. It does what a rack's switch does to a machine
// that boots, and what the kernels of test machines often cannot: delay and loss,
// VLANs, a port that spanning tree keeps closed, an LACP partner.
//
// What happens to a frame is a function of values (Table, Line, lacp, PlainPXE);
// Switch is the loop around them that has the clock and the sockets.
package l2
