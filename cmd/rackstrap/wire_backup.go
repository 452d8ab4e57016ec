package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/cmd/rackstrap/cli"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/backup"
	"github.com/rackstrap/rackstrap/store/bolt"
)

var _ rest.Backups = (*appliance)(nil)

// Backup implements rest.Backups.
func (a *appliance) Backup(ctx context.Context, passphrase string) (rest.Archive, error) {
	if n := len(passphrase); n > 0 && n < backup.MinPassphrase {
		c := hardware.NewChecker("request", "backup")
		c.Addf("passphrase", "has %d bytes, wanted %d or more (make one: openssl rand -base64 24)", n, backup.MinPassphrase)
		return nil, c.Err()
	}
	t, err := backup.Take(ctx, a.kv, backup.Options{
		Version: version, Now: time.Now(), Dir: a.c.Data, Check: bolt.Check, KeyFile: filepath.Join(a.c.Data, keyFile), Passphrase: passphrase,
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// readBackup reads a backup to its end, for the command line.
func readBackup(ctx context.Context, r io.Reader, dir, passphrase string) (cli.BackupInfo, error) {
	o, err := backup.Open(ctx, r, dir, bolt.Check)
	if err != nil {
		return cli.BackupInfo{}, err
	}
	info := cli.BackupInfo{Bytes: o.Manifest.Bytes, Key: o.Manifest.Key}
	if passphrase != "" {
		_, err = o.Key(passphrase)
	}
	return info, errors.Join(err, o.Close())
}

// sweepCopies removes what backups and restores left behind that a crash cut short;
// each may be as large as the database.
func sweepCopies(dir string) error {
	for _, pattern := range []string{".backup-*", ".restore-*"} {
		left, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range left {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
