package rest

import (
	"net/http"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// maxStrangerText bounds what is shown of a stranger's own words, in bytes.
const maxStrangerText = 64

// Strangers remembers machines without a record.
type Strangers interface {
	// Strangers lists them, the latest heard first.
	Strangers() []api.Stranger
}

func (s *server) strangers(w http.ResponseWriter, r *http.Request) error {
	items := []api.Stranger{}
	if s.Strangers != nil {
		items = append(items, s.Strangers.Strangers()...)
	}
	for i := range items {
		items[i].Vendor = hardware.PlainText(items[i].Vendor, maxStrangerText)
		items[i].Detail = hardware.PlainText(items[i].Detail, 512)
		items[i].Hostname = hardware.PlainText(items[i].Hostname, maxStrangerText)
	}
	return writeJSON(w, http.StatusOK, api.List[api.Stranger]{APIVersion: api.Version, Kind: "StrangerList", Items: items})
}
