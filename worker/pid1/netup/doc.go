// Package netup brings up the network card that the machine booted from: link,
// DHCPv4 lease, address, routes, and the renewal of the lease for as long as the
// worker runs.
package netup
