package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	t.Parallel()
	l, err := listenLimited("127.0.0.1:0", maxConnsPerAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 2*maxConnsPerAddr)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var held []net.Conn
	for range maxConnsPerAddr {
		dial()
		held = append(held, <-accepted)
	}
	if _, err := dial().Read(make([]byte, 1)); err != io.EOF && !isReset(err) {
		t.Errorf("one more than allowed: %v, want the end of the connection", err)
	}
	_ = held[0].Close()
	_ = held[0].Close() // a second Close must not free a second place
	dial()
	<-accepted
	if _, err := dial().Read(make([]byte, 1)); err != io.EOF && !isReset(err) {
		t.Errorf("after a place was freed once: %v", err)
	}
}

// TestAnOfficeBehindOneAddress: 300 people who are signed in come from one address. They
// cost little, and strangers from there keep none of them out, whatever they hold open.
func TestAnOfficeBehindOneAddress(t *testing.T) {
	t.Parallel()
	const pages = 300
	dir, err := os.MkdirTemp("", "rs") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config, socket := filepath.Join(dir, "rackstrap.yaml"), filepath.Join(dir, "s")
	at := configure(t, dir, config, socket, 7011)
	cmd := daemon(t, config)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	local := client.New(client.Options{Socket: socket})
	defer local.Close()
	made, err := local.CreateToken(t.Context(), "office", api.NewTokenSpec{Role: hardware.RoleViewer})
	if err != nil {
		t.Fatal(err)
	}
	trust := &tls.Config{InsecureSkipVerify: true}
	// a page has a connection of its own, with a stream of events that stays open
	page := func() (ask func(path string) (*http.Response, error)) {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}}
		t.Cleanup(c.CloseIdleConnections)
		return func(path string) (*http.Response, error) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+api.Base+path, nil)
			if err != nil {
				return nil, err
			}
			r.Header.Set("Authorization", "Bearer "+made.Secret)
			if path == "/events" {
				r.Header.Set("Accept", "text/event-stream")
			}
			resp, err := c.Do(r)
			if err == nil && resp.StatusCode != http.StatusOK {
				_ = resp.Body.Close()
				err = errors.New(resp.Status)
			}
			return resp, err
		}
	}
	open := func(ask func(string) (*http.Response, error)) error {
		resp, err := ask("/events")
		if err == nil {
			t.Cleanup(func() { _ = resp.Body.Close() })
		}
		return err
	}
	first := page()
	if err := open(first); err != nil { // what the first one costs is not a page's
		t.Fatal(err)
	}
	before := resident(t, cmd.Process.Pid)
	for i := range pages - 1 {
		if err := open(page()); err != nil {
			t.Fatalf("page %d: %v", i+2, err)
		}
	}
	cost := resident(t, cmd.Process.Pid) - before
	t.Logf("%d pages from one address: %d MiB", pages, cost>>20)
	if limit := int64(pages) << 20; cost > limit { // 200 of them in 200 MiB
		t.Errorf("they cost %d MiB, want at most %d", cost>>20, limit>>20)
	}
	for range maxHTTPSPerAddr + 20 { // strangers who only hold a connection
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	resp, err := first("/whoami")
	if err != nil {
		t.Fatalf("who is signed in, meanwhile: %v", err)
	}
	_ = resp.Body.Close()
}

// resident is what a process has in memory that is its own, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kb int64
	for line := range strings.Lines(string(raw)) {
		if n, err := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 && err == nil {
			return kb << 10
		}
	}
	t.Fatalf("no RssAnon in %s", raw)
	return 0
}

// TestSignedInAreCountedApart: they leave their place to the next stranger, as many as may,
// and each place is given back once.
func TestSignedInAreCountedApart(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr("10.0.0.7")
	l := &limitListener{most: 2, from: map[netip.Addr]share{}}
	var open []*limitedConn
	come := func() bool {
		ok := l.take(a)
		if ok {
			open = append(open, &limitedConn{l: l, from: a})
		}
		return ok
	}
	for range maxSignedPerAddr {
		if !come() {
			t.Fatal("refused beside those who are signed in")
		}
		open[len(open)-1].signIn()
		open[len(open)-1].signIn()
	}
	for want := range 3 {
		if come() != (want < 2) {
			t.Errorf("stranger %d: want places for two", want+1)
		}
	}
	open[len(open)-1].signIn() // one too many: it stays one of the two
	if come() {
		t.Error("a stranger came beyond the bounds")
	}
	open[0].release()
	open[len(open)-1].signIn()
	if !come() {
		t.Error("the place of who left and of who signed in is not free")
	}
	for _, c := range open {
		c.release()
		c.release()
		c.signIn()
	}
	if l.total != 0 || len(l.from) != 0 {
		t.Errorf("left: %d, %v", l.total, l.from)
	}
}

func isReset(err error) bool {
	_, ok := err.(*net.OpError)
	return ok
}
