// Package ipxe is what machines load between their firmware and our worker: boot
// programs, kernel and initramfs (Assets), the boot scripts for iPXE and GRUB
// (Script, Grub), and the handlers that serve them over HTTP (NewHandler, Server)
// and, with the same content, over TFTP (TFTPFiles).
package ipxe
