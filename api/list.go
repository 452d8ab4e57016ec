package api

// Change is one field that a change of a record changes. A value that is missing was,
// or will be, absent.
type Change struct {
	// Field is the path, for example spec.interfaces[0].mac.
	Field string `json:"field"`
	From  any    `json:"from,omitempty"`
	To    any    `json:"to,omitempty"`
}

// Deleted is the answer to a forced DELETE that had something to skip.
type Deleted struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	// Skipped names what was not done, or left without what it needs.
	Skipped []string `json:"skipped,omitempty"`
}
