// Package client is the Go client of the daemon's REST API: the command line, the
// Cluster API provider and the lab use it. Every error that the daemon gives is an
// *api.Problem; a daemon that cannot be reached is an *Unreachable.
package client
