package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
)

// A look that panics is a failed check, also one in a goroutine of its own, and the
// others are made.
func TestDoctorPanics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := defaultConfig()
	c.Data, c.Socket, c.Interfaces = filepath.Join(dir, "data"), filepath.Join(dir, "sock"), []string{"lo"}
	d := &doctor{in: func(func() error) error { panic("no such network") }, progress: func(string) {}}
	by := map[string]diagnosis{}
	for _, x := range append(d.examineWith(t.Context(), &c), d.others(t.Context(), &c, []nic{{name: "lo", up: true}}, &running{})...) {
		by[x.About] = x
	}
	for _, about := range []string{"interfaces", "DHCP on lo"} {
		if x := by[about]; x.Result != gradeFail || x.Do == "" || !strings.Contains(x.Says, "no such network") {
			t.Errorf("%s: %+v", about, x)
		}
	}
	if x := by["clock"]; x.Result == "" {
		t.Errorf("what comes after it is not looked at: %+v", by)
	}
}

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
