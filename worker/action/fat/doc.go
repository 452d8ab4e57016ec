// Package fat makes small FAT file systems, as bytes. Every system can read them,
// the firmware included, on disks with sectors of any size; an ISO 9660 file system
// could not be mounted from a disk with sectors of 4096 bytes.
package fat
