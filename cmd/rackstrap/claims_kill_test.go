package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
)

const daemonEnv = "RACKSTRAP_TEST_DAEMON"

// TestMain lets the test binary be the daemon that is killed.
func TestMain(m *testing.M) {
	if os.Getenv(daemonEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// What TestClaimsOverKills does: 200 claimers, of whom 50 keep what they get.
const (
	killMachines  = 50
	killKeepers   = 50
	killReleasers = 150
	kills         = 20
)

// killed is a daemon that is killed again and again, and those who use it.
type killed struct {
	t      *testing.T
	config string
	socket string

	mu    sync.Mutex
	life  int           // counts the starts of the daemon
	dying bool          // this life is over, or about to be
	next  chan struct{} // closed when the next life begins
	acks  int           // claims and releases of this life that were answered
	kill  int           // the life ends after so many
	end   chan struct{} // closed then
	over  bool          // no more kills: those who release stop
	// repeated counts the answers that needed more than one request.
	repeated int

	owner  map[string]string          // machine: the claim whose answer arrived
	answer map[string]*hardware.Claim // claim: its answer
	ended  map[string]bool            // claims whose release was answered
}

// TestClaimsOverKills: 200 claimers compete for 50 machines while the daemon is
// killed 20 times in the middle of it. Each asks until there is an answer, with the
// same id. No machine is ever answered to two at once, a claim always has the same
// machine, and in the end what was answered is what is stored.
func TestClaimsOverKills(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "rs") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	k := &killed{
		t: t, config: filepath.Join(dir, "rackstrap.yaml"), socket: filepath.Join(dir, "s"), next: make(chan struct{}), dying: true,
		owner: map[string]string{}, answer: map[string]*hardware.Claim{}, ended: map[string]bool{},
	}
	configure(t, dir, k.config, k.socket, 7001)
	db, closeDB := openStore(t, dir)
	for n := range killMachines {
		h := &hardware.Hardware{
			Meta: hardware.Meta{Name: fmt.Sprintf("m%d", n)},
			Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 1, byte(n)}}}},
		}
		if err := db.CreateHardware(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	closeDB()

	var all sync.WaitGroup
	for i := range killReleasers {
		all.Go(func() { k.releaser(i) })
	}
	for i := range killKeepers {
		all.Go(func() { k.keeper(i) })
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range kills {
		p := k.start(1 + r.IntN(4*killMachines))
		<-k.end
		if err := p.Process.Kill(); err != nil { // SIGKILL
			t.Error(err)
		}
		_ = p.Wait() // "signal: killed"
	}
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	last := k.start(-1)
	all.Wait()
	if err := last.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := last.Wait(); err != nil {
		t.Error(err)
	}
	db, closeDB = openStore(t, dir)
	defer closeDB()
	k.compare(db)
}

// configure writes a configuration of a daemon without DHCP, on loopback ports from first
// on, and returns the address of its HTTPS.
func configure(t *testing.T, dir, config, socket string, first int) (https string) {
	t.Helper()
	text := fmt.Sprintf("data: %s\nsocket: %s\ndhcp: {enabled: false}\n", dir, socket)
	pid := os.Getpid() // an address of our own: no port is in use there
	for i, listener := range []string{"tftp", "http", "https", "worker", "health"} {
		at := fmt.Sprintf("127.%d.%d.%d:%d", 64+pid>>16&63, pid>>8&255, pid&255, first+i)
		if listener == "https" {
			https = at
		}
		text += fmt.Sprintf("%s: {listen: \"%s\"}\n", listener, at)
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return https
}

// daemon starts one and waits until it is ready.
func daemon(t *testing.T, config string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--config", config)
	cmd.Env = append(os.Environ(), daemonEnv+"=1")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	ready, said := false, ""
	for !ready && lines.Scan() {
		said += lines.Text() + "\n"
		ready = strings.Contains(lines.Text(), "msg=ready")
	}
	if !ready {
		t.Fatalf("the daemon did not start: %v\n%s", cmd.Wait(), said)
	}
	go func() {
		for lines.Scan() { // so that it can write
			if strings.Contains(lines.Text(), "level=ERROR") {
				t.Log(lines.Text())
			}
		}
	}()
	return cmd
}

// start begins a life of the daemon, which is to be killed after so many answers.
func (k *killed) start(kill int) *exec.Cmd {
	k.t.Helper()
	cmd := daemon(k.t, k.config)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.life++
	k.dying, k.acks, k.kill, k.end = false, 0, kill, make(chan struct{})
	close(k.next)
	k.next = make(chan struct{})
	return cmd
}

// acked counts something that was done; the one that is one too many ends this life.
func (k *killed) acked(repeated bool) {
	if repeated {
		k.repeated++
	}
	if k.acks++; k.acks == k.kill {
		k.dying = true
		close(k.end)
	}
}

// up waits for a daemon that lives and says which life it is.
func (k *killed) up() int {
	for {
		k.mu.Lock()
		dying, next, life := k.dying, k.next, k.life
		k.mu.Unlock()
		if !dying {
			return life
		}
		<-next
	}
}

// until asks until there is an answer: done, or a problem that is one.
func (k *killed) until(what string, ask func(context.Context) error) error {
	for failed := 0; ; failed++ {
		life := k.up()
		err := ask(k.t.Context())
		var p *api.Problem
		if err == nil || errors.As(err, &p) && p.Code != api.CodeUnavailable {
			k.mu.Lock()
			if err == nil {
				k.acked(failed > 0)
			}
			k.mu.Unlock()
			return err
		}
		k.mu.Lock()
		dead := k.dying || k.life != life
		k.mu.Unlock()
		var u *client.Unreachable
		if !dead && (!errors.As(err, &u) || failed > 1000) {
			k.t.Errorf("%s: %v, while the daemon lives", what, err)
			return err
		}
	}
}

// claim asks for a machine until it has one; nil where none is to be had and it
// shall not go on.
func (k *killed) claim(c *client.Client, id string, goOn func() bool) *hardware.Claim {
	for goOn() {
		var got *hardware.Claim
		err := k.until("claim "+id, func(ctx context.Context) (err error) {
			got, err = c.Claim(ctx, &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: "test/" + id}})
			return err
		})
		var p *api.Problem
		switch {
		case errors.As(err, &p) && p.Code == api.CodeNoCandidate:
			continue
		case err != nil:
			k.t.Errorf("claim %s: %v", id, err)
			return nil
		}
		k.mu.Lock()
		if old := k.answer[id]; old != nil && old.Status != got.Status {
			k.t.Errorf("claim %s had %+v and has %+v", id, old.Status, got.Status)
		} else if o := k.owner[got.Status.UID]; old == nil && o != "" {
			k.t.Errorf("%s was answered to %s while %s has it", got.Status.Hardware, id, o)
		}
		k.owner[got.Status.UID], k.answer[id] = id, got
		k.mu.Unlock()
		return got
	}
	return nil
}

// keeper claims one machine, when its time has come, and asks again in later lives.
func (k *killed) keeper(i int) {
	c := client.New(client.Options{Socket: k.socket})
	defer c.Close()
	id := fmt.Sprintf("keep-%d", i)
	for life := k.up(); life <= i*kills/killKeepers; life = k.up() {
		<-k.after(life)
	}
	always := func() bool { return true }
	if k.claim(c, id, always) == nil {
		return
	}
	for life := k.up(); life <= kills; life = k.up() {
		<-k.after(life)
		k.claim(c, id, always)
	}
}

// after is closed when a later life than this one has begun.
func (k *killed) after(life int) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life > life {
		c := make(chan struct{})
		close(c)
		return c
	}
	return k.next
}

// releaser claims and releases, each time with a new id, until there are no more
// kills.
func (k *killed) releaser(i int) {
	c := client.New(client.Options{Socket: k.socket})
	defer c.Close()
	goOn := func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.over
	}
	for n := 0; goOn(); n++ {
		id := fmt.Sprintf("give-%d-%d", i, n)
		got := k.claim(c, id, goOn)
		if got == nil {
			// it may have been taken by a request whose answer got lost: give that back
			err := k.until("release "+id, func(ctx context.Context) error { _, err := c.ReleaseClaim(ctx, id); return err })
			var p *api.Problem
			if err != nil && (!errors.As(err, &p) || p.Code != api.CodeNotFound) {
				k.t.Errorf("release %s: %v", id, err)
			}
			return
		}
		k.mu.Lock()
		delete(k.owner, got.Status.UID) // from here on it can be somebody else's
		k.mu.Unlock()
		err := k.until("release "+id, func(ctx context.Context) error {
			out, err := c.ReleaseClaim(ctx, id)
			if err == nil && out.Claim.Status.Ended.IsZero() {
				err = errors.New("released, and not ended")
			}
			return err
		})
		if err != nil {
			k.t.Errorf("release %s: %v", id, err)
		}
		k.mu.Lock()
		k.ended[id] = true
		k.mu.Unlock()
	}
}

// compare looks at what is stored.
func (k *killed) compare(db *store.DB) {
	k.t.Helper()
	all, err := db.ListHardware(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	owned := map[string]int{}
	for _, h := range all {
		c := h.Status.Claim
		if c == nil || !strings.HasPrefix(c.ID, "keep-") {
			k.t.Errorf("%s belongs to %+v, wanted one of those who keep", h.Meta.Name, c)
			continue
		}
		owned[c.ID]++
		if got := k.answer[c.ID]; got == nil || got.Status.UID != h.Meta.UID || owned[c.ID] > 1 {
			k.t.Errorf("%s belongs to %s, which was told %+v, and has %d machines", h.Meta.Name, c.ID, got, owned[c.ID])
		}
	}
	claims, err := db.ListClaims(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	stored := map[string]*hardware.Claim{}
	held := 0
	for _, c := range claims {
		stored[c.Meta.Name] = c
		if c.Status.Ended.IsZero() {
			held++
		}
	}
	for id, a := range k.answer {
		s := stored[id]
		if s == nil || s.Status.UID != a.Status.UID || k.ended[id] == s.Status.Ended.IsZero() {
			k.t.Errorf("claim %s was answered with %+v (ended: %v) and is stored as %+v", id, a.Status, k.ended[id], s)
		}
	}
	if len(all) != killMachines || held != killMachines {
		k.t.Errorf("%d machines, %d claims that are held; wanted %d of each", len(all), held, killMachines)
	}
	k.t.Logf("%d claims were answered over %d kills; %d answers came to a repeated request", len(k.answer), kills, k.repeated)
	if len(k.answer) < killMachines+5*kills || k.repeated < 2*kills {
		k.t.Error("too little happened to say anything")
	}
}
