package lab_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// newLab makes a lab that the test closes; ctx ends with the test's time.
func newLab(t *testing.T, o lab.Options) (*lab.Lab, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	o.Name = "test"
	l, err := lab.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, ctx
}

func TestClientsReachTheLAN(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	l, ctx := newLab(t, lab.Options{Subnet: netip.MustParsePrefix("10.78.3.0/24")})
	mac := net.HardwareAddr{0x52, 0x54, 0, 1, 2, 3}
	c, err := l.AddVeth(ctx, "one", mac)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetAddr(ctx, netip.MustParsePrefix("10.78.3.20/24")); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Command(ctx, "ip", "-o", "addr", "show", "dev", lab.ClientIface).CombinedOutput(); err != nil || !strings.Contains(string(out), "10.78.3.20/24") {
		t.Fatalf("%v: %s", err, out)
	}
	err = c.Do(func() error {
		ifi, err := net.InterfaceByName(lab.ClientIface)
		if err == nil && ifi.HardwareAddr.String() != mac.String() {
			t.Errorf("the client's MAC is %s, want %s", ifi.HardwareAddr, mac)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	ln, err := l.Listen(ctx, "tcp", "10.78.3.1:80")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	})}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close() })
	resp, err := c.HTTPClient().Get("http://10.78.3.1/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	from, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasPrefix(string(from), "10.78.3.20:") {
		t.Errorf("the server saw %q, %v", from, err)
	}
}

func TestThreadsComeHome(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	l, ctx := newLab(t, lab.Options{})
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		pc, err := l.ListenPacket(ctx, "udp4", "10.77.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		pc.Close()
		now, err := os.Readlink("/proc/thread-self/ns/net")
		if err != nil || now != home {
			t.Fatalf("a thread is in %s, want %s (%v)", now, home, err)
		}
	}
	if _, err := l.Dial(ctx, "tcp", "localhost:80"); err == nil {
		t.Error("a name was looked up, it must be refused")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	lab.Require(t, "sleep")
	dir := t.TempDir()
	l, ctx := newLab(t, lab.Options{Dir: dir})
	c, err := l.AddVeth(ctx, "one", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := lab.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{l.Name(), c.Name()}; !slices.Equal(s.Namespaces, want) {
		t.Errorf("lab.json names %v, want %v", s.Namespaces, want)
	}
	daemon := c.Command(ctx, "sleep", "1000")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err == nil {
		t.Error("the command in the client's namespace was not killed")
	}
	assertGone(t, s)
	if _, err := lab.ReadState(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("lab.json is still there: %v", err)
	}
	if _, err := l.AddVeth(ctx, "two", nil); err == nil {
		t.Error("a closed lab took another client")
	}
}

func TestCleanAfterDetach(t *testing.T) {
	t.Parallel()
	lab.Require(t, "sleep")
	dir := t.TempDir()
	l, ctx := newLab(t, lab.Options{Dir: dir})
	daemon := l.Command(ctx, "sleep", "1000")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := lab.ReadState(dir)
	if err != nil {
		t.Fatalf("Close took a detached lab down: %v", err)
	}
	if _, err := lab.New(ctx, lab.Options{Name: "test", Dir: dir}); err == nil {
		t.Error("a second lab was made in the directory of the first")
	}
	for range 2 {
		if err := lab.Clean(ctx, dir); err != nil {
			t.Fatal(err)
		}
	}
	_ = daemon.Wait()
	assertGone(t, s)
}

// TestOwnerDies runs this test binary again as the owner of a lab and kills it.
func TestOwnerDies(t *testing.T) {
	t.Parallel()
	lab.Require(t, "sleep")
	if dir := os.Getenv("LAB_TEST_OWNER_DIR"); dir != "" {
		ownALab(t, dir)
		return
	}
	dir := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOwnerDies$")
	owner.Env = append(os.Environ(), "LAB_TEST_OWNER_DIR="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	// The command in the lab inherits this pipe: its end of file is the end of
	// the owner and of everything that it started.
	ready := make([]byte, 6)
	if _, err := io.ReadFull(out, ready); err != nil {
		t.Fatal(err)
	}
	s, err := lab.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	waitGone(t, s.RunDir)
	assertGone(t, s)
}

func ownALab(t *testing.T, dir string) {
	l, err := lab.New(t.Context(), lab.Options{Name: "test", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	cmd := l.Command(t.Context(), "sh", "-c", "echo ready; exec sleep 1000")
	cmd.Stdout = os.Stdout
	t.Log(cmd.Run())
}

// waitGone waits for the watchdog's last deed, the removal of the sockets'
// directory. There is no event for it in this process, so it looks again.
func waitGone(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); ; {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s is still there", dir)
		}
	}
}

func assertGone(t *testing.T, s lab.State) {
	t.Helper()
	for _, ns := range s.Namespaces {
		for _, path := range []string{filepath.Join("/run/netns", ns), filepath.Join("/etc/netns", ns), s.RunDir} {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there", path)
			}
		}
	}
}
