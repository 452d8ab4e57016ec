// Package worker is Rackstrap's agent in a machine's memory: it connects to the
// appliance with the boot token of its kernel command line, runs one action at a
// time, and reports each result until that is acknowledged.
//
// Session is that part; it needs neither to be process 1 nor root. Life is the
// rest: what the worker does as the init of an initramfs that holds nothing else.
// Whatever goes wrong there ends in words on the console and a restart, never in a
// dead machine.
package worker
