package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keyFilePrefix begins the one line of a key file; 64 hex digits follow.
const keyFilePrefix = "rackstrap-seal-1 "

// LoadSeal reads the key file. An absent file is an fs.ErrNotExist; a file that
// others can read, or that is no key file, is refused.
func LoadSeal(path string) (*Seal, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a regular file", path)
	}
	if perm := st.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("%s: mode %#o lets others read the key of all secrets (chmod 600 %s)", path, perm, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	digits, ok := bytes.CutPrefix(bytes.TrimSpace(b), []byte(keyFilePrefix))
	var secret [32]byte
	if n, err := hex.Decode(secret[:], digits[:min(len(digits), 64)]); !ok || err != nil || n != len(secret) || len(digits) != 64 {
		return nil, fmt.Errorf("%s: is not a rackstrap key file, or is cut short (put the right one back; it is in the backups made with the key)", path)
	}
	return NewSeal(secret), nil
}

// CreateSeal makes a new key file with mode 0600, durably. An existing file is an
// fs.ErrExist and stays as it is.
func CreateSeal(path string) (*Seal, error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails since Go 1.24
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".seal-*") // CreateTemp's mode is 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = fmt.Fprintf(f, "%s%x\n", keyFilePrefix, secret)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // unlike rename, link never replaces
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make the key file: %w", err)
	}
	return NewSeal(secret), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// sealFor finds the Seal of a store: the key file at path, made there if the store
// is new.
func sealFor(path string, isNew bool) (*Seal, error) {
	s, err := LoadSeal(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return s, err
	case isNew:
		return CreateSeal(path)
	}
	return nil, fmt.Errorf("%s: the key file is gone, and without it nobody can read what is sealed in the store (put it back from a backup made with the key; or begin anew with an empty `data` directory)", path)
}
