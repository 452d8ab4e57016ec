// Package hardware holds the words of the rack: the Hardware record of one
// machine, its NICs, the Subnet it lives in, the facts found in it, its
// lifecycle state, its leases, and Boot: what it boots next. Everything here is
// a value or a function from values to values; nothing does I/O.
package hardware
