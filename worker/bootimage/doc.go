// Package bootimage makes the initramfs that machines boot: the kernel modules
// that a server may need, and the worker as /init.
//
// Everything here is a function of its arguments: which modules to take from a
// kernel package, which lines of the depmod files to keep, how the archive
// looks. The command cmd/mkassets fetches packages and writes files; `make
// assets` runs it. Nothing of this is part of the product's binaries.
package bootimage
