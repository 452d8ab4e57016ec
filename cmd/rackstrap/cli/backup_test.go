package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/backup"
	"github.com/rackstrap/rackstrap/store/bolt"
)

// backups makes backups of the test's daemon, as the real one does.
type backups struct {
	kv       store.Backuper
	dir, key string
}

func (b backups) Backup(ctx context.Context, passphrase string) (rest.Archive, error) {
	return backup.Take(ctx, b.kv, backup.Options{Version: "1.2.3", Now: time.Unix(1e9, 0), Dir: b.dir, Check: bolt.Check, KeyFile: b.key, Passphrase: passphrase})
}

func readBackup(ctx context.Context, r io.Reader, dir, passphrase string) (BackupInfo, error) {
	o, err := backup.Open(ctx, r, dir, bolt.Check)
	if err != nil {
		return BackupInfo{}, err
	}
	info := BackupInfo{Bytes: o.Manifest.Bytes, Key: o.Manifest.Key}
	if passphrase != "" {
		_, err = o.Key(passphrase)
	}
	return info, errors.Join(err, o.Close())
}
