package action

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHoldersOf: what is built on a disk is found, on its partitions too; what
// cannot be stopped is named. worker.TestMachineReleases stops real arrays.
func TestHoldersOf(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{"sda", mib, map[string]string{"holders/md0": "", "sda2/holders/dm-0": "", "sda3/holders/dm-0": ""}})
	sys := filepath.Join(env.Sys.Block, "sda")
	if got := holders(sys); !slices.Equal(got, []string{"dm-0", "md0"}) {
		t.Errorf("got %v", got)
	}
	d, err := env.disk("")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(env.Sys.Block, "dm-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = takeApart(env, d)
	if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "dm-0 is neither a device mapper nor an md device") {
		t.Errorf("got %v", err)
	}
	// One that holds itself ends, too.
	if err := os.MkdirAll(filepath.Join(env.Sys.Block, "dm-0/holders/dm-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := takeApart(env, d); err == nil || !strings.Contains(err.Error(), "more than 16") {
		t.Errorf("got %v", err)
	}
}
