package action

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/worker/netconfig"
)

// The file of netplan has what was given: its order, its quotes, the values of
// aliases; not its comments.
func TestRenderNetplan(t *testing.T) {
	t.Parallel()
	doc, err := netconfig.Parse(`# site
network:
  version: 2
  ethernets:
    nic1: {match: {macaddress: "52:54:00:12:34:57"}, nameservers: &dns {addresses: [192.0.2.1]}} # first
    nic0:
      match: {macaddress: "10:20:30:40:50:59"}
      set-name: "no"
      dhcp4: false
      mtu: 9000
      nameservers: *dns
`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderNetplan(doc)
	const want = `network:
  version: 2
  ethernets:
    nic1: {match: {macaddress: "52:54:00:12:34:57"}, nameservers: {addresses: [192.0.2.1]}}
    nic0:
      match: {macaddress: "10:20:30:40:50:59"}
      set-name: "no"
      dhcp4: false
      mtu: 9000
      nameservers: {addresses: [192.0.2.1]}
`
	if err != nil || string(got) != want {
		t.Errorf("%v, got:\n%s", err, got)
	}
}

// What would cost a small machine its memory, or a minute, is refused at once.
func TestHostileNetwork(t *testing.T) {
	t.Parallel()
	var keys strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	bomb := "version: 2\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	text := "version: 2\nt: &t \"" + strings.Repeat("x", 100<<10) + "\"\nall: [" + strings.Repeat("*t, ", 4000) + "*t]\n"
	// What the parser does is counted, not what else the machine does meanwhile.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime(t)
	for name, tt := range map[string]struct{ doc, wrong string }{
		"many keys":  {"version: 2\n" + keys.String(), ""},
		"too many":   {"version: 2\n" + keys.String() + keys.String(), "longer than is read"},
		"too long":   {"version: 2\nx: " + strings.Repeat("x", netconfig.MaxBytes), "longer than is read"},
		"deep":       {"version: 2\nx:\n " + strings.Repeat("- ", 100_000), "depth"},
		"bomb":       {bomb, "excessive aliasing"},
		"long alias": {text, "aliases followed"},
		"own alias":  {"version: 2\nx: &x [*x]", "contains itself"},
		"merge":      {"version: 2\nx: &x {a: 1}\ny: {<<: *x}", "write its keys out"},
		"twice":      {"version: 2\nversion: 2", "already defined"},
		"two":        {"version: 2\n---\nversion: 2", "more than one document"},
	} {
		doc, err := netconfig.Parse(tt.doc)
		if err == nil {
			_, err = renderNetplan(doc)
		}
		if (err == nil) != (tt.wrong == "") || (err != nil && !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, tt.wrong)
		}
	}
	if took := threadTime(t) - begin; took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// threadTime is the processor time of this thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// A file of the image that is too long to be judged is named, not passed over.
func TestUnpinNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "etc/cloud/cloud.cfg.d")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("1.cfg", "network: {config: disabled}\n")
	put("2.cfg", "a: [\n")
	put("3.cfg", "- network\n")
	put("4.cfg", "users: []\nusers: []\n")
	tr, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	env := Env{Log: newTestLogger(t.Output())}
	if err := unpinNetwork(env, tr); err != nil {
		t.Fatal(err)
	}
	if got, err := tr.list("etc/cloud/cloud.cfg.d"); err != nil || strings.Join(got, " ") != "2.cfg 3.cfg 4.cfg" {
		t.Errorf("left: %v, %v", got, err)
	}
	put("5.cfg", strings.Repeat("# comment\n", netconfig.MaxValues+1))
	if err := unpinNetwork(env, tr); err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "5.cfg") {
		t.Errorf("got %v", err)
	}
}
