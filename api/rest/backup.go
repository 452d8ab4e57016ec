package rest

import (
	"context"
	"io"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
)

// Backups makes backups; see store/backup for their form.
type Backups interface {
	// Backup makes and checks a copy of everything and returns it as an archive. With
	// a passphrase the key file is in it.
	Backup(ctx context.Context, passphrase string) (Archive, error)
}

// Archive is a backup that was checked. Close it.
type Archive interface {
	io.WriterTo
	io.Closer
}

func backupRoutes() []Route {
	return []Route{{
		Method: http.MethodPost, Path: "/backup", Does: "Make a backup of all records, while everything goes on",
		Role: RoleAdmin, In: api.Backup{}, Out: blobBody{}, handle: (*server).backup,
	}}
}

func (s *server) backup(w http.ResponseWriter, r *http.Request) error {
	var in api.Backup
	if err := options(w, r, "backup", &in); err != nil {
		return err
	}
	if s.Backups == nil {
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: "this daemon makes no backups"}
	}
	a, err := s.Backups.Backup(r.Context(), in.Passphrase)
	if err != nil {
		return err
	}
	defer a.Close()
	w.Header().Set("Content-Type", "application/zstd")
	w.WriteHeader(http.StatusOK)
	if _, err := a.WriteTo(w); err != nil {
		// the archive has checksums, so whoever reads on notices; the connection is cut
		// so that nobody takes it for whole
		s.Log.Warn("backup not sent to its end", "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
