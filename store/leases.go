package store

import (
	"context"

	"github.com/rackstrap/rackstrap/hardware"
)

// Leases keeps the DHCP leases, one per (subnet, MAC). It is apart from KV because
// a rack that powers on asks for thousands in a second, each of them durable
// before its ACK. Reads are from memory. All methods may be called concurrently.
type Leases interface {
	// Put writes the lease; it is durable when Put returns nil. On an error the
	// lease that was there before is still what Get returns.
	Put(ctx context.Context, l hardware.Lease) error
	// Get reads the lease of a MAC in a subnet (its name).
	Get(subnet string, mac hardware.MAC) (hardware.Lease, bool)
	// List returns all leases, also expired and released ones, by subnet and address.
	List() []hardware.Lease
	// Delete forgets a lease; an absent one is not an error. Durable like Put.
	Delete(ctx context.Context, subnet string, mac hardware.MAC) error
}
