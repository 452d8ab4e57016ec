package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if mode := os.Getenv("BOLT_TEST_CHILD"); mode != "" {
		if err := child(mode, os.Getenv("BOLT_TEST_PATH")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child opens the store, does what mode says, and prints a line for each thing
// that was acknowledged; it ends when it is killed.
func child(mode, path string) error {
	ctx := context.Background()
	kv, err := Open(path, Options{JournalBytes: 20_000, LogRevisions: 200})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...) // one write a line: a line is whole or absent
	}
	switch mode {
	case "hold":
		say("open")
	case "own":
		s, err := kv.Session(ctx, 1<<40)
		if err != nil {
			return err
		}
		for i := range 3 {
			x := store.Txn{Puts: []store.Put{{Key: "free"}}}
			for j := range 50 {
				x.Puts = append(x.Puts, store.Put{Key: fmt.Sprintf("owned%d-%d", i, j), Session: s.ID()})
			}
			if _, err := kv.Txn(ctx, x); err != nil {
				return err
			}
		}
		say("owned")
	case "write":
		for w := range 8 {
			go func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("w%d/%d", w, i)
					rev, err := kv.Txn(ctx, store.Txn{Puts: []store.Put{{Key: key, Value: []byte(key)}, {Key: fmt.Sprintf("w%d", w), Value: []byte(key)}}})
					if err != nil {
						return
					}
					say("key %s %d", key, rev)
				}
			}()
			go func() {
				for i := 0; ; i++ {
					l := lease(w<<16 | i)
					if kv.Leases().Put(ctx, l) != nil {
						return
					}
					say("lease %d x", w<<16|i)
				}
			}()
		}
	}
	select {}
}

type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func startChild(t *testing.T, mode, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOLT_TEST_CHILD="+mode, "BOLT_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{cmd, bufio.NewScanner(out)}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the child ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// kill is SIGKILL; it returns when the process is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for p.out.Scan() {
	}
	_ = p.cmd.Wait()
}

// lease is a lease that depends on n alone.
func lease(n int) hardware.Lease {
	return hardware.Lease{
		MAC: hardware.MAC{0x52, 0x54, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, Subnet: "lan",
		Hostname: strconv.Itoa(n), ClientID: "01525400",
	}
}

// TestKill: whenever the process is killed, everything it has acknowledged is there
// and the file is sound. Each round goes on with the file of the one before.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "rackstrap.db")
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 4 {
		p := startChild(t, "write", path)
		var acked []string
		for range 50 + rng.IntN(1500) {
			acked = append(acked, p.line(t))
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.out.Scan() {
			acked = append(acked, p.out.Text())
		}
		_ = p.cmd.Wait()
		checkAcked(t, path, acked)
		if t.Failed() {
			t.Fatalf("round %d, seed %d, %d acknowledged", round, seed, len(acked))
		}
	}
}

func checkAcked(t *testing.T, path string, acked []string) {
	t.Helper()
	kv, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, line := range acked {
		f := strings.Fields(line)
		switch f[0] {
		case "key":
			e, err := kv.Get(t.Context(), f[1])
			// A later round writes the same keys again, with later revisions.
			if rev, _ := strconv.ParseUint(f[2], 10, 64); err != nil || string(e.Value) != f[1] || e.Revision < rev {
				t.Errorf("%s: %+v, %v", line, e, err)
			}
		case "lease":
			n, _ := strconv.Atoi(f[1])
			if got, ok := kv.Leases().Get("lan", lease(n).MAC); !ok || got != lease(n) {
				t.Errorf("%s: %+v", line, got)
			}
		default:
			t.Fatalf("the child says %q", line)
		}
	}
	if err := kv.db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		return nil
	}); err != nil {
		t.Errorf("the file is damaged: %v", err)
	}
}

// TestDiskFull: a full disk gives an error that says so, harms nothing, reading goes
// on, and so does writing when there is room again.
func TestDiskFull(t *testing.T) {
	mustRoot(t, "a small file system is mounted")
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal(err)
		}
		t.Skipf("mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	other := filepath.Join(dir, "other") // what the operator will remove
	if err := os.WriteFile(other, make([]byte, 300_000), 0o600); err != nil {
		t.Fatal(err)
	}
	kv, err := Open(filepath.Join(dir, "rackstrap.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	acked := map[string]uint64{}
	var full error
	for i := 0; full == nil && i < 1000; i++ {
		key := fmt.Sprintf("k%d", i)
		var rev uint64
		rev, full = kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: key, Value: make([]byte, 20_000)}}})
		if full == nil {
			acked[key] = rev
		}
	}
	if !errors.Is(full, store.ErrNoSpace) || !strings.Contains(full.Error(), "free some space") || len(acked) == 0 {
		t.Fatalf("after %d writes: %v", len(acked), full)
	}
	// Fill the rest, so that the journal meets the end too.
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close()
	if err := kv.Leases().Put(t.Context(), lease(1)); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("lease on a full disk: %v", err)
	}
	if _, ok := kv.Leases().Get("lan", lease(1).MAC); ok {
		t.Error("a lease that was refused shows")
	}
	check := func(kv *KV) {
		t.Helper()
		for key, rev := range acked {
			if e, err := kv.Get(t.Context(), key); err != nil || e.Revision != rev || len(e.Value) != 20_000 {
				t.Fatalf("%s: revision %d, %d bytes, %v; wanted revision %d", key, e.Revision, len(e.Value), err, rev)
			}
		}
	}
	check(kv)
	if err := errors.Join(os.Remove(ballast), os.Remove(other)); err != nil {
		t.Fatal(err)
	}
	rev, err := kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: "room", Value: make([]byte, 20_000)}}})
	if err != nil {
		t.Fatalf("with room again: %v", err)
	}
	acked["room"] = rev
	if err := kv.Leases().Put(t.Context(), lease(2)); err != nil {
		t.Errorf("lease with room again: %v", err)
	}
	check(kv)
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	checkAcked(t, kv.path, []string{"lease 2 x"})
	kv, err = Open(kv.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(kv)
	if err := kv.Close(); err != nil {
		t.Error(err)
	}
}
