package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rackstrap/rackstrap/worker"
	"github.com/rackstrap/rackstrap/workflow"
)

// What our scripts have a machine do, read from the goldens of package ipxe.
func TestReadScript(t *testing.T) {
	t.Parallel()
	const dir = "../../../ipxe/testdata/scripts"
	for name, want := range map[string]verdictKind{
		"worker.ipxe": bootKernel, "disk.ipxe": nextDevice, "denied.ipxe": nextDevice, "pending.ipxe": nextDevice, "notoken.ipxe": askAgain,
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := readScript(string(b))
		if got.what != want {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
		if want != bootKernel {
			continue
		}
		if p, err := worker.ParseCommandLine(got.args); err != nil || p.Token == "" {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	a, b, c := &disk{Disk: Disk{Path: "/dev/sda", Bytes: 1, Serial: "A"}}, &disk{Disk: Disk{Path: "/dev/sdb", Bytes: 3, Serial: "B"}}, &disk{Disk: Disk{Path: "/dev/sdc", Bytes: 3, Serial: "C"}}
	all := []*disk{b, a, c}
	for sel, want := range map[string]*disk{"smallest": a, "largest": nil, "/dev/sdc": c, "serial=B": b, "": nil, "serial=X": nil} {
		got, err := choose(all, workflow.Disk(sel))
		if got != want || (err == nil) != (want != nil) {
			t.Errorf("%q: %+v, %v", sel, got, err)
		}
	}
	if got, err := choose(all[:1], ""); got != b || err != nil {
		t.Errorf("the only one: %+v, %v", got, err)
	}
}
