package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
)

// BackupInfo is what a backup holds.
type BackupInfo struct {
	// Bytes of the records, not packed.
	Bytes int64
	// Key says that the key is in it.
	Key bool
}

func (a *app) backupCommand() *cobra.Command {
	var passphraseFile string
	cmd := &cobra.Command{
		Use: "backup [FILE]", Short: "Save all records into a file, while everything goes on", Args: atMostOne,
		Long: `Save all records (machines, networks, templates, workflows, claims, tokens, leases,
events) into a file, while everything goes on. The file is read back and checked before
the command says that it is done; then it has its name.

What is secret in it is sealed with the appliance's key, seal.key in its data
directory. The key is not in the backup, unless --passphrase-file names a file with a
passphrase to lock it with. Without the key nobody can restore the backup: keep a copy.

Image files are not in it: they are in images/ below the data directory.`,
		Example: "  rackstrap backup\n  rackstrap backup /backup/rack.tar.zst --passphrase-file pass.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "rackstrap-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.zst"
			if len(args) > 0 {
				name = args[0]
			}
			var in api.Backup
			if passphraseFile != "" {
				text, err := a.readFile(passphraseFile)
				if err != nil {
					return err
				}
				in.Passphrase, _, _ = strings.Cut(text, "\n")
				if in.Passphrase = strings.TrimSuffix(in.Passphrase, "\r"); in.Passphrase == "" {
					return fmt.Errorf("%s: its first line, the passphrase, is empty", passphraseFile)
				}
			}
			m, err := a.takeBackup(cmd.Context(), in, name)
			if err != nil {
				return err
			}
			key := "without the key: keep a copy of seal.key"
			if m.Key {
				key = "with the key, under the passphrase"
			}
			_, err = fmt.Fprintf(a.Out, "%s: checked, %s of records, %s\n", name, size(m.Bytes), key)
			return err
		},
	}
	cmd.Flags().StringVar(&passphraseFile, "passphrase-file", "", "put the key into the backup too, under the passphrase in this file's first line")
	return cmd
}

// takeBackup writes the archive beside its name, reads it back, and gives it its
// name only then.
func (a *app) takeBackup(ctx context.Context, in api.Backup, name string) (m BackupInfo, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".rackstrap-backup-*")
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	defer func() { err = errors.Join(err, f.Close()) }()
	c := a.client()
	defer c.Close()
	meter := newMeter(a.Err, "backup")
	err = c.Backup(ctx, in, f, func(n int64) { meter.set(n, 0) })
	meter.end()
	if err != nil {
		return m, err
	}
	if err := f.Sync(); err != nil {
		return m, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return m, err
	}
	if m, err = a.ReadBackup(ctx, f, filepath.Dir(name), in.Passphrase); err != nil {
		return m, fmt.Errorf("read back: %w", err)
	}
	return m, os.Rename(f.Name(), name)
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(cmd, "takes one FILE, got also %q", args[1])
	}
	return nil
}
