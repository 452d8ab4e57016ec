package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The appliance starts where its logs cannot be read: machines boot without them.
func TestLogsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "logs"), []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	openAppliance(t, dir)
}
