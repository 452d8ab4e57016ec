package bolt

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

var update = flag.Bool("update", false, "write the fixture of the present layout; the test fails all the same")

// fixture writes what the fixture of each layout holds.
func fixture(t *testing.T, path string) {
	kv, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, kv, "hardware/1/spec", "one")
	put(t, kv, "subnet/lan", "two")
	if err := kv.Leases().Put(t.Context(), lease(1)); err != nil {
		t.Fatal(err)
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
}

// compact copies the pages in use: a file grows in large steps.
func compact(t *testing.T, from, to string) {
	t.Helper()
	kv, err := Open(from, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := kv.Backup(t.Context(), &buf); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(kv.Close(), os.WriteFile(to, buf.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestFixtures opens the files that every released layout has left behind.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for n := 1; n <= len(migrations()); n++ {
		golden := filepath.Join("testdata", fmt.Sprintf("layout-%d.db", n))
		if *update && n == len(migrations()) {
			path := filepath.Join(t.TempDir(), "rackstrap.db")
			fixture(t, path)
			compact(t, path, golden)
			t.Errorf("wrote %s; look at it, then run without -update", golden)
		}
		b, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "rackstrap.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		kv := open(t, dir, Options{})
		if get(t, kv, "hardware/1/spec") != "one" || get(t, kv, "subnet/lan") != "two" {
			t.Errorf("layout %d: keys are lost", n)
		}
		if got, ok := kv.Leases().Get("lan", lease(1).MAC); !ok || got != lease(1) {
			t.Errorf("layout %d: lease %+v", n, got)
		}
		if rev := put(t, kv, "new", "three"); rev != 3 {
			t.Errorf("layout %d: revisions go on with %d", n, rev)
		}
	}
}

// TestMigrate walks an invented history of layouts.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rackstrap.db")
	fixture(t, path)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ran := 0
	steps := append(migrations(), func(tx *bbolt.Tx) error {
		ran++
		return tx.Bucket(bucketKV).Delete([]byte("subnet/lan"))
	})
	for range 2 { // the second time there is nothing to do
		if err := migrate(db, path, steps); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := schemaOf(db); n != len(steps) || err != nil || ran != 1 {
		t.Errorf("layout %d, %v, the step ran %d times", n, err, ran)
	}
	failing := append(steps, func(tx *bbolt.Tx) error {
		_ = tx.DeleteBucket(bucketKV)
		return fmt.Errorf("no")
	})
	if err := migrate(db, path, failing); err == nil || !strings.Contains(err.Error(), "migration from layout") {
		t.Errorf("failing step: %v", err)
	}
	if n, _ := schemaOf(db); n != len(steps) {
		t.Errorf("a failing step left layout %d", n)
	}
	if err := db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket(bucketKV) == nil {
			return fmt.Errorf("a failing step was half done")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file func(t *testing.T, path string)
		want []string
	}{
		"newer": {func(t *testing.T, path string) {
			fixture(t, path)
			edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keySchema, []byte("999")) })
		}, []string{"its layout is 999", "newer rackstrap"}},
		"another program's": {func(t *testing.T, path string) {
			edit(t, path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
		}, []string{"another program"}},
		"not bbolt": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("text "), 20_000), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"not a rackstrap database", "restore"}},
		"strange journal": {func(t *testing.T, path string) {
			if err := os.WriteFile(journalName(path, 1), []byte("something else"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"leases-1: is not a lease journal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "rackstrap.db")
			tc.file(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(path, Options{})
			if err == nil {
				t.Fatal("opened")
			}
			for _, w := range append(tc.want, path) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: does not say %q", err, w)
				}
			}
			if after, _ := os.ReadFile(path); len(before) > 0 && !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
	_, err := Open(filepath.Join(t.TempDir(), "none", "rackstrap.db"), Options{})
	if err == nil || !strings.Contains(err.Error(), "`data`") {
		t.Errorf("no directory: %v", err)
	}
}

func edit(t *testing.T, path string, fn func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLocked: the error names the process that has the file.
func TestLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "rackstrap.db")
	child := startChild(t, "hold", path)
	child.line(t) // it is open
	_, err := Open(path, Options{LockTimeout: 10 * time.Millisecond})
	want := fmt.Sprintf("open %s: in use by pid %d", path, child.cmd.Process.Pid)
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "`data`") {
		t.Errorf("%v, wanted %s", err, want)
	}
	child.kill(t)
	open(t, dir, Options{}) // the lock goes with the process
	if _, err := Open(path, Options{LockTimeout: 10 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "this process") {
		t.Errorf("second open here: %v", err)
	}
}

func TestLockPID(t *testing.T) {
	t.Parallel()
	const locks = "1: POSIX  ADVISORY  WRITE 700 fe:00:393 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 812 fe:00:393 0 EOF\n" +
		"2: -> FLOCK  ADVISORY  WRITE 900 fe:00:393 0 EOF\n" +
		"3: FLOCK  ADVISORY  WRITE 0 fe:00:394 0 EOF\nrubbish\n"
	if pid, ok := lockPID(locks, 393); !ok || pid != 812 {
		t.Errorf("pid %d, %v", pid, ok)
	}
	for _, inode := range []uint64{394, 395} {
		if pid, ok := lockPID(locks, inode); ok {
			t.Errorf("inode %d: pid %d", inode, pid)
		}
	}
}

// TestOwnedAtStart: sessions end with their process.
func TestOwnedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := startChild(t, "own", filepath.Join(dir, "rackstrap.db"))
	child.line(t)
	child.kill(t)
	kv := open(t, dir, Options{})
	p, err := kv.List(t.Context(), store.Range{KeysOnly: true})
	if err != nil || len(p.Entries) != 1 || p.Entries[0].Key != "free" {
		t.Errorf("keys after the owner was killed: %+v, %v", p.Entries, err)
	}
	for b, err := range kv.Watch(t.Context(), "owned", p.Revision) {
		if err != nil || len(b.Changes) != 150 || !b.Changes[0].Deleted {
			t.Errorf("watch: %d changes, %v", len(b.Changes), err)
		}
		break
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	kv := open(t, t.TempDir(), Options{})
	put(t, kv, "a", "1")
	if err := kv.Leases().Put(t.Context(), lease(7)); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // others go on writing
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_, _ = kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: fmt.Sprintf("busy%d", i)}}})
			}
		}
	}()
	var buf bytes.Buffer
	n, err := kv.Backup(t.Context(), &buf)
	close(stop)
	<-done
	if err != nil || n != int64(buf.Len()) {
		t.Fatalf("%d bytes of %d, %v", n, buf.Len(), err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rackstrap.db"), buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := open(t, dir, Options{})
	if get(t, copied, "a") != "1" {
		t.Error("the copy has not the key")
	}
	if _, ok := copied.Leases().Get("lan", lease(7).MAC); !ok {
		t.Error("the copy has not the lease")
	}
	if err := copied.db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// mustRoot skips a test that needs root, or fails where nothing may be skipped.
func mustRoot(t *testing.T, why string) {
	t.Helper()
	if os.Getuid() == 0 {
		if _, err := exec.LookPath("mount"); err == nil {
			return
		}
	}
	if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
		t.Fatalf("needs root and mount: %s", why)
	}
	t.Skipf("needs root and mount: %s", why)
}
