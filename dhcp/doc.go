// Package dhcp answers DHCPv4 for the machines that have a Hardware record.
//
// A packet goes through functions from values to values: Classify (what does the
// client say it is?), Locate (which record, Subnet and address?), Decide (what do
// we answer?) and Route (where does the answer go?). Server is the dull loop
// around them: it reads sockets, makes the lease durable, and writes the reply.
//
// The rules are those of RFC 2131 (protocol), RFC 2132 (options), RFC 3046
// (relays), RFC 3396 (long options), RFC 3442 (routes), RFC 4578 (PXE) and the
// UEFI specification's HTTP boot; what real firmware does beyond them stands in a
// comment where it matters.
package dhcp
