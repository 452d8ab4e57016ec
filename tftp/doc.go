// Package tftp serves files read-only over TFTP (RFC 1350) with the options
// blksize (RFC 2348) and tsize (RFC 2349). The protocol engine is pin/tftp in its
// default mode, a socket per transfer; nothing outside this package knows that.
//
// Names are cleaned by CleanName before the Handler sees them.
package tftp
