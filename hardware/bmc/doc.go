// Package bmc switches machines on and off and says what they boot next. A Driver
// is one way to do it for one machine; Power is what the rest of the program uses.
//
// There are two drivers: manual, where a person is told what to press, and webhook,
// where a receiver of the operator's is called (deploy/docs/power.md). A driver for
// a protocol of a BMC is another file and another line in Drivers. What it has to
// know of the machine (firmware, where its controller is) is in the record that it
// is made from. Its Off is hard (Redfish ForceOff, IPMI chassis power off) and its
// NextBoot holds for one boot (Redfish BootSourceOverrideEnabled Once, IPMI boot
// flags without persistence, with the EFI bit where the firmware is UEFI); what a
// controller cannot do it returns as a *Refused that is errors.ErrUnsupported.
package bmc
