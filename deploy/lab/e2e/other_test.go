package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rackstrap/rackstrap/api/client"
)

func clientFilter(machine string) client.Filter { return client.Filter{Hardware: machine, Limit: 1000} }

// otherSystem is a disk that another system was on: a GPT with an ext4 root, an
// LVM-looking second partition at the end, and boot code in the MBR that prints a
// line and stops, so that a leftover would be seen.
func otherSystem(t *testing.T) string {
	t.Helper()
	path := filepath.Join(workDir(t), "other.raw")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(3 << 30); err != nil {
		t.Fatal(err)
	}
	run(t, "sgdisk", "-n", "1:2048:+1G", "-t", "1:8300", "-n", "2:0:0", "-t", "2:8e00", path)
	run(t, "mkfs.ext4", "-q", "-F", "-E", "offset=1048576", path, "1048576k")
	// mov ah,0x0e; mov al,'X'; int 0x10; hlt; jmp
	if _, err := f.WriteAt([]byte{0xb4, 0x0e, 0xb0, 'X', 0xcd, 0x10, 0xf4, 0xeb, 0xfd}, 0); err != nil {
		t.Fatal(err)
	}
	// an LVM2 label in the second sector of the second partition
	if _, err := f.WriteAt([]byte("LABELONE"), 1048576+(1<<30)+512); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
