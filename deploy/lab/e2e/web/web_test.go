package web_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLogic runs what needs no browser.
func TestLogic(t *testing.T) {
	t.Parallel()
	require(t)
	out, err := exec.CommandContext(t.Context(), filepath.Join(root(t), "web/ui/build"), "test").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestRack runs the files that share a rack, one after the other.
func TestRack(t *testing.T) {
	t.Parallel()
	require(t)
	s := newStage(t, "web")
	if err := s.FillRack(t.Context(), busyTime); err != nil {
		t.Fatal(err)
	}
	env := where(s.URL, s.Tokens, s.Fingerprint, newControl(t, s))
	for _, f := range files(t, "") {
		t.Run(name(f), func(t *testing.T) { node(t, f, fileTime, env) })
	}
}

// TestOwn runs the files that need a rack of their own.
func TestOwn(t *testing.T) {
	t.Parallel()
	require(t)
	for _, f := range files(t, "own") {
		t.Run(name(f), func(t *testing.T) {
			s := newStage(t, "webown")
			if err := s.FillRack(t.Context(), busyTime); err != nil {
				t.Fatal(err)
			}
			node(t, f, fileTime, where(s.URL, s.Tokens, s.Fingerprint, newControl(t, s)))
		})
	}
}

// TestEmpty runs the files that begin with nothing.
func TestEmpty(t *testing.T) {
	t.Parallel()
	require(t)
	for _, f := range files(t, "empty") {
		t.Run(name(f), func(t *testing.T) {
			s := newStage(t, "webempty")
			node(t, f, fileTime, where(s.URL, s.Tokens, s.Fingerprint, newControl(t, s)))
		})
	}
}
