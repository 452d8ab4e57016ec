package api

// Bulk is the body of POST /bulk: one verb on many machines. With ?dryRun=true the
// answer is a preview, and nothing happens.
type Bulk struct {
	// Verb is hold, unhold, label, delete, accept, maintenance, release, retire, inspect,
	// provision, cancel (the active workflow) or power.
	Verb string `json:"verb"`
	// Names are the machines; or Selector, State or both choose them. All is needed where
	// neither is given.
	Names    []string `json:"names,omitempty"`
	Selector string   `json:"selector,omitempty"`
	State    []string `json:"state,omitempty"`
	All      bool     `json:"all,omitempty"`
	// Options are what the body of that verb on one machine has; of label see Label.
	Options map[string]any `json:"options,omitempty"`
	// Confirm is how many machines the caller expects. With another number nothing is
	// done. A preview needs none.
	Confirm *int `json:"confirm,omitempty"`
}

// Label are the options of the bulk verb label.
type Label struct {
	Set    map[string]string `json:"set,omitempty"`
	Remove []string          `json:"remove,omitempty"`
}

// Delete are the options of the bulk verb delete.
type Delete struct {
	Force bool `json:"force,omitempty"`
}
