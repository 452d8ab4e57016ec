package rest

import (
	"net/http"

	"github.com/rackstrap/rackstrap/api"
)

func (s *server) bootFileList(w http.ResponseWriter, _ *http.Request) error {
	items := []api.BootFile{}
	if s.BootFileList != nil {
		files, err := s.BootFileList()
		if err != nil {
			return err
		}
		items = append(items, files...)
	}
	return writeJSON(w, http.StatusOK, api.List[api.BootFile]{APIVersion: api.Version, Kind: "BootFileList", Items: items})
}
