package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/backup"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// The names of what a backup holds, below the data directory.
const (
	databaseFile = "rackstrap.db"
	keyFile      = "seal.key"
)

func newRestoreCommand() *cobra.Command {
	var config, data, passphraseFile string
	var replace, asIs bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in place of the records; the daemon must be stopped",
		Long: `Put a backup in place of the records. The daemon must be stopped.

The backup is read to its end and checked before anything is touched. Records that
are there already are kept beside it (rackstrap.db.before-TIME) with --replace, and
are a refusal without it.

What is sealed in the backup needs its key: the one in the data directory, or the one
in the backup, if it was made with one (--passphrase-file).

Every machine that is not provisioned in the backup is put on hold: it may have been
claimed and installed since, and nothing must be wiped because the backup does not know.
--as-is leaves that out, for a move to another server with the daemon stopped.`,
		Example: "  systemctl stop rackstrap\n  rackstrap restore rackstrap-backup.tar.zst\n  rackstrap restore rackstrap-backup.tar.zst --data /var/lib/rackstrap --passphrase-file pass.txt --replace",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if data == "" {
				c, err := loadConfig(config)
				if err != nil {
					return err
				}
				data = c.Data
			}
			pass, err := readPassphrase(passphraseFile)
			if err != nil {
				return err
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			r := restorer{dir: data, passphrase: pass, replace: replace, asIs: asIs, now: time.Now(), out: cmd.OutOrStdout()}
			return r.restore(cmd.Context(), f)
		},
	}
	f := cmd.Flags()
	f.StringVar(&config, "config", defaultConfigPath, "configuration file, for the data directory")
	f.StringVar(&data, "data", "", "the data directory")
	f.StringVar(&passphraseFile, "passphrase-file", "", "file with the passphrase of the key in the backup")
	f.BoolVar(&asIs, "as-is", false, "put nothing on hold: no machine was touched since the backup")
	f.BoolVar(&replace, "replace", false, "keep the records that are there aside")
	return cmd
}

// readPassphrase reads a file's first line; a passphrase on the command line would
// be seen in the list of processes.
func readPassphrase(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("%s: its first line, the passphrase, is empty", path)
	}
	return line, nil
}

// restorer puts one backup in place.
type restorer struct {
	dir        string
	passphrase string
	replace    bool
	asIs       bool
	now        time.Time
	out        io.Writer
}

func (r restorer) restore(ctx context.Context, archive io.Reader) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	target := filepath.Join(r.dir, databaseFile)
	there, err := r.free(target)
	if err != nil {
		return err
	}
	o, err := backup.Open(ctx, archive, r.dir, bolt.Check)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }()
	made, err := r.key(o)
	if err != nil {
		return err
	}
	held, err := r.hold(ctx, o.Database)
	if err == nil {
		err = r.place(o.Database, target, there)
	}
	if err != nil {
		if made {
			err = errors.Join(err, os.Remove(filepath.Join(r.dir, keyFile)))
		}
		return err
	}
	_, err = fmt.Fprintf(r.out, "restored the records of %s into %s\n", o.Manifest.Created.Format(time.DateTime+" MST"), r.dir)
	return errors.Join(err, r.tell(held), r.tellImages())
}

// free says whether records are there, and errs where they may not be replaced or a
// daemon has them open.
func (r restorer) free(target string) (there bool, err error) {
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !r.replace {
		return true, fmt.Errorf("%s: there are records already (keep them aside with --replace)", target)
	}
	// a daemon has it locked; a damaged one is no obstacle
	if _, err := bolt.Check(target); err != nil && strings.Contains(err.Error(), "in use by") {
		return true, err
	}
	return true, nil
}

// key makes sure that what is sealed in the backup can be opened; made says that the
// key file was written.
func (r restorer) key(o *backup.Opened) (made bool, err error) {
	path := filepath.Join(r.dir, keyFile)
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	none := err != nil
	switch {
	case r.passphrase == "" && none && o.Manifest.Key:
		return false, fmt.Errorf("%s is not there, and the key in the backup needs its passphrase (--passphrase-file)", path)
	case r.passphrase == "" && none:
		return false, fmt.Errorf("%s is not there, and the backup was made without the key (put the key file of that appliance there first)", path)
	case r.passphrase == "":
		return false, nil // store.New proves it
	}
	key, err := o.Key(r.passphrase)
	if err != nil {
		return false, err
	}
	if !none && !bytes.Equal(have, key) {
		return false, fmt.Errorf("%s: is another key than the one in the backup (move it away first)", path)
	}
	if !none {
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	_, err = f.Write(key)
	return true, errors.Join(err, f.Sync(), f.Close())
}

// hold opens the records, which proves the key and migrates them, and holds the
// machines that a claim or a workflow of the past could destroy.
func (r restorer) hold(ctx context.Context, path string) (names found, err error) {
	seal, err := store.LoadSeal(filepath.Join(r.dir, keyFile))
	if err != nil {
		return names, err
	}
	kv, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return names, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	db, err := store.New(ctx, kv, seal, store.Options{Leases: kv.Leases()})
	if errors.Is(err, store.ErrWrongKey) {
		return names, fmt.Errorf("%s: the backup was sealed with another key: %w", filepath.Join(r.dir, keyFile), err)
	}
	if err != nil {
		return names, err
	}
	if err := db.EndSessions(ctx); err != nil { // whoever signs in again knows of the restore
		return names, err
	}
	if names.tokens, err = liveTokens(ctx, db, r.now); err != nil || r.asIs {
		return names, err
	}
	all, err := db.ListHardware(ctx)
	if err != nil {
		return names, err
	}
	for _, h := range all {
		s := &h.Status
		if quiet := !s.KeptUnwiped() && !s.Stopping.Awaited(); s.State == hardware.StateRetired || s.State == hardware.StateProvisioned && quiet {
			continue // nothing writes to it or switches it off by itself, and no claim picks it
		}
		m, err := db.Machine(ctx, h.Meta.UID)
		if err != nil {
			return names, err
		}
		m.Status.Hold, m.Status.HoldReason, m.Status.HoldSince = true, hardware.ReasonRestored, r.now
		ev := workflow.Event{Hardware: m.UID, Machine: h.Meta.Name, Reason: hardware.ReasonRestored, First: r.now}
		if err := db.Commit(ctx, &workflow.Change{Machine: m, Events: []workflow.Event{ev}}); err != nil {
			return names, err
		}
		names.held = append(names.held, h.Meta.Name)
	}
	slices.Sort(names.held)
	return names, nil
}

// liveTokens names the tokens that are good again.
func liveTokens(ctx context.Context, db *store.DB, now time.Time) ([]string, error) {
	all, err := db.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range all {
		if !t.Expired(now) && t.Spec.SessionOf == "" {
			out = append(out, t.Meta.Name)
		}
	}
	return out, nil
}

// found is what a human must look at after a restore.
type found struct {
	held, tokens []string
}

// tell prints it.
func (r restorer) tell(f found) error {
	var b strings.Builder
	if n := len(f.held); n > 0 {
		fmt.Fprintf(&b, "on hold: %s\nwhat happened to these since the backup is not in it: one may run a system by now. Look at each, then type: rackstrap hardware unhold NAME\n", some(f.held))
	}
	if len(f.tokens) > 0 {
		fmt.Fprintf(&b, "tokens that are good again, also those that were revoked since: %s (rackstrap token revoke NAME)\n", some(f.tokens))
	}
	_, err := io.WriteString(r.out, b.String())
	return err
}

// some lists names, not all of many.
func some(names []string) string {
	const most = 20
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// place moves the database to its place, and what was there aside, with the leases
// that were journalled for it.
func (r restorer) place(from, to string, there bool) error {
	if there {
		aside := to + ".before-" + r.now.UTC().Format("20060102T150405Z")
		old, err := filepath.Glob(to + ".leases-*")
		if err != nil {
			return err
		}
		for _, name := range append(old, to) {
			if err := os.Rename(name, aside+strings.TrimPrefix(name, to)); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(r.out, "the records that were there are in %s\n", aside); err != nil {
			return err
		}
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	d, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// tellImages says what a backup does not have.
func (r restorer) tellImages() error {
	if e, err := os.ReadDir(filepath.Join(r.dir, "images")); err == nil && len(e) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(r.out, "image files are not in a backup: copy %s from where it was, or add the images again\n", filepath.Join(r.dir, "images"))
	return err
}
