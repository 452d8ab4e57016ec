package api

import "time"

// BootFile is one file that machines are sent on their way to the worker, or a part of
// one.
type BootFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Origin is debian (embedded, as in the Debian package), built (embedded, made by
	// `make assets`) or operator (from a drop-in folder).
	Origin string `json:"origin"`
	// Package and Version are Debian's, where it is embedded.
	Package string `json:"package,omitempty"`
	Version string `json:"version,omitempty"`
	Licence string `json:"licence,omitempty"`
	// Path and Modified are the operator's file's.
	Path     string    `json:"path,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	// Replaces says what is embedded by that name and not served: package and version.
	Replaces string `json:"replaces,omitempty"`
}
