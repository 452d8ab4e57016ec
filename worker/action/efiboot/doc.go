// Package efiboot tells a UEFI firmware to boot from a disk once. A machine that
// asks the network first spends minutes there before it comes to its disk:
// firmware tries PXE and HTTP, over IPv4 and IPv6, one after the other.
//
// It writes one load option and the variable BootNext, which the firmware deletes
// before it follows it (UEFI specification 2.10, section 3.3). BootOrder is the
// machine owner's and is never written.
package efiboot
