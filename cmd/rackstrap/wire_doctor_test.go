package main

import (
	"path/filepath"
	"testing"

	"github.com/rackstrap/rackstrap/api"
)

// The daemon looks with its own configuration, and what it finds keeps its words.
func TestDaemonExamines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := defaultConfig()
	c.Data, c.Socket, c.Interfaces = filepath.Join(dir, "data"), filepath.Join(dir, "sock"), []string{"lo"}
	c.DHCP.Enabled = false
	a := &appliance{c: c}
	found, err := a.examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]api.DoctorCheck{}
	for _, x := range found {
		by[x.Name] = x
		if x.Detail == "" || x.Result == api.CheckFail && x.Fix == "" {
			t.Errorf("%+v", x)
		}
	}
	for name, want := range map[string]api.CheckResult{"daemon": api.CheckFail, "data": api.CheckWarn, "DHCP": api.CheckOK, "clock": by["clock"].Result} {
		if got := by[name]; got.Result != want || got.Result == "" {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
}
