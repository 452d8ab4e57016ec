// Package codec turns the bytes of an image file into the bytes of a disk.
//
// It recognises the compression by content, never by name; refuses content
// that is not a disk, so that an error page or a virtual machine format is
// never written to one; and reports success only when the whole source was
// read, had the expected length and checksum, and decoded to its end.
//
// Memory is bounded whatever the source says: [MaxWindow] for the dictionary
// of zstd and xz plus a few fixed buffers.
package codec
