// Package pid1 is what a worker needs because nothing else runs on the machine:
// mounts and device nodes, the console, the kernel's settings, dead children,
// the watchdog, and the restart at the end. Its subpackages load kernel modules
// (module) and bring the network up (netup).
//
// What is to be made is data: tables of values that can Create themselves and
// print themselves, so that a failure names the thing that failed.
package pid1
