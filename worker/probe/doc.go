// Package probe finds what is in a machine: hardware.Facts from /sys and /proc.
// Everything is read through an fs.FS whose root is the machine's "/", so that
// tests need no machine. What cannot be read is left out: facts are a help, never a
// reason to stop. The disks themselves are read by [Layouts] only: they may not answer,
// and what is on them is anybody's.
package probe
