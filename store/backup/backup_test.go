package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/backup"
	"github.com/rackstrap/rackstrap/store/bolt"
)

const passphrase = "correct horse battery"

// archive is a backup of a store with one machine, that is in use.
func archive(t *testing.T, pass string) (raw []byte, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
	must(t, err)
	t.Cleanup(func() { _ = kv.Close() })
	keyFile = filepath.Join(dir, "seal.key")
	db, err := store.Open(t.Context(), kv, keyFile, store.Options{})
	must(t, err)
	mac, _ := hardware.ParseMAC("52:54:00:00:00:01")
	must(t, db.CreateHardware(t.Context(), &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{UserData: "swordfish", Interfaces: []hardware.NIC{{MAC: mac}}}}))
	taken, err := backup.Take(t.Context(), kv, backup.Options{Version: "1.2.3", Now: time.Unix(1e9, 0), Dir: dir, Check: bolt.Check, KeyFile: keyFile, Passphrase: pass})
	must(t, err)
	var b bytes.Buffer
	n, err := taken.WriteTo(&b)
	must(t, err)
	if n != int64(b.Len()) {
		t.Errorf("%d bytes were written, %d said", b.Len(), n)
	}
	must(t, taken.Close())
	if left, _ := filepath.Glob(filepath.Join(dir, ".backup-*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	return b.Bytes(), keyFile
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	raw, keyFile := archive(t, passphrase)
	if bytes.Contains(raw, []byte("swordfish")) {
		t.Error("a secret is in the backup in clear")
	}
	o, err := backup.Open(t.Context(), bytes.NewReader(raw), t.TempDir(), bolt.Check)
	must(t, err)
	key, err := o.Key(passphrase)
	must(t, err)
	want, err := os.ReadFile(keyFile)
	must(t, err)
	if !bytes.Equal(key, want) {
		t.Error("the key in the backup is another")
	}
	if _, err := o.Key("correct horse stapler"); !errors.Is(err, backup.ErrPassphrase) {
		t.Errorf("wrong passphrase: %v", err)
	}
	kv, err := bolt.Open(o.Database, bolt.Options{})
	must(t, err)
	seal, err := store.LoadSeal(keyFile)
	must(t, err)
	db, err := store.New(t.Context(), kv, seal, store.Options{})
	must(t, err)
	h, err := db.HardwareByName(t.Context(), "m1")
	if err != nil || h.Spec.UserData != "swordfish" {
		t.Errorf("%+v, %v", h, err)
	}
	must(t, kv.Close())
	must(t, o.Close())
}

func TestWithoutTheKey(t *testing.T) {
	t.Parallel()
	raw, _ := archive(t, "")
	o, err := backup.Open(t.Context(), bytes.NewReader(raw), t.TempDir(), bolt.Check)
	must(t, err)
	defer o.Close()
	if _, err := o.Key(passphrase); err == nil || o.Manifest.Key {
		t.Errorf("a key came out of nowhere: %v", err)
	}
	if _, err := backup.Take(t.Context(), nil, backup.Options{Passphrase: "short"}); err == nil || !strings.Contains(err.Error(), "wanted 12 or more") {
		t.Errorf("a short passphrase: %v", err)
	}
}

// Whatever is cut off or altered is noticed, and nothing is left behind.
func TestDamaged(t *testing.T) {
	t.Parallel()
	raw, _ := archive(t, passphrase)
	dir := t.TempDir()
	good, err := backup.Open(t.Context(), bytes.NewReader(raw), dir, bolt.Check)
	must(t, err)
	damaged := func(name string, b []byte) {
		t.Helper()
		o, err := backup.Open(t.Context(), bytes.NewReader(b), dir, bolt.Check)
		if !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
		if err == nil {
			_ = o.Close()
		}
	}
	for i := 0; i < len(raw); i += max(1, len(raw)/64) {
		damaged("cut", raw[:i])
	}
	for i := 0; i < len(raw); i += max(1, len(raw)/64) {
		b := bytes.Clone(raw)
		b[i] ^= 0x41
		o, err := backup.Open(t.Context(), bytes.NewReader(b), dir, bolt.Check)
		if err == nil { // padding, or the key, which has a MAC of its own
			if o.Manifest.SHA256 != good.Manifest.SHA256 {
				t.Errorf("byte %d altered, and the database is another", i)
			}
			_ = o.Close()
		}
	}
	_ = good.Close()
	damaged("empty", nil)
	damaged("text", []byte("no backup at all"))
	damaged("other files", pack(t, map[string]string{"hello": "x"}))
	damaged("no format", pack(t, map[string]string{"manifest.json": "{}"}))
	if _, err := backup.Open(t.Context(), bytes.NewReader(pack(t, map[string]string{"manifest.json": `{"format":99,"version":"9.9"}`})), dir, bolt.Check); err == nil || !strings.Contains(err.Error(), "9.9") {
		t.Errorf("a newer format: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	must(t, err)
	a := tar.NewWriter(z)
	for name, text := range files {
		must(t, a.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600}))
		_, err := io.WriteString(a, text)
		must(t, err)
	}
	must(t, a.Close())
	must(t, z.Close())
	return b.Bytes()
}
