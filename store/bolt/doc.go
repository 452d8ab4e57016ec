// Package bolt is the embedded backend of the store: one bbolt file, written by
// one goroutine that commits waiting transactions as a group, and a journal for
// DHCP leases beside it.
//
// Buckets of the file:
//
//	meta      schema → decimal version of this layout
//	kv        key → revision (8 bytes, big endian), session (8), value
//	log       revision (8) → the changes of that transaction; its sequence is the
//	          newest revision. Bounded, oldest entries go first.
//	sessions  session (8) + key → nothing: the keys that a session owns
//	leases    subnet NUL mac → JSON of hardware.Lease
package bolt
