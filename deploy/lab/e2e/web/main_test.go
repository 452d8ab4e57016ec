// Package web_test runs the tests of the web UI, web/ui/test/*.test.mjs, in a real browser
// at a real appliance. The name of a file says what it is tested on:
//
//	NAME.test.mjs        an appliance with a rack in every state, which these files share
//	NAME.own.test.mjs    such an appliance of its own, to be killed, filled and emptied
//	NAME.empty.test.mjs  an appliance without any record, of its own
//	NAME.guest.test.mjs  an appliance with a virtual machine that boots for real
package web_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/stage"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// binEnv names the binary under test, with the UI inside; bin/rackstrap where empty.
	binEnv = "RACKSTRAP_BIN"
	// chromiumEnv names another browser than the system's.
	chromiumEnv = "CHROMIUM"
	// actionTime is how long the actions of the machines take: to be seen, not to be waited for.
	actionTime = 200 * time.Millisecond
	// busyTime is for those that shall be seen moving during all tests.
	busyTime = 10 * time.Minute
	// fileTime bounds one file of tests.
	fileTime = 10 * time.Minute
)

// root is the repository's.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	depsOnce sync.Once
	errDeps  error
)

// require is what all tests here need.
func require(t *testing.T, tools ...string) {
	t.Helper()
	chromium := os.Getenv(chromiumEnv)
	if chromium == "" {
		chromium = "chromium"
	}
	lab.Require(t, append([]string{"node", chromium}, tools...)...)
	depsOnce.Do(func() {
		out, err := exec.Command(filepath.Join(root(t), "web/ui/build"), "deps").CombinedOutput()
		if err != nil {
			errDeps = errors.Join(err, errors.New(string(out)))
		}
	})
	if errDeps != nil {
		t.Fatal(errDeps)
	}
}

// binary is the daemon under test.
func binary(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv(binEnv); bin != "" {
		return bin
	}
	return filepath.Join(root(t), "bin", "rackstrap")
}

// kind is what a file of tests is tested on, by its name.
func kind(file string) string {
	words := strings.Split(filepath.Base(file), ".")
	if len(words) == 4 {
		return words[1]
	}
	return ""
}

// files are the files of tests of one kind.
func files(t *testing.T, want string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root(t), "web/ui/test/*.test.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	some := slices.DeleteFunc(all, func(f string) bool { return kind(f) != want })
	if len(some) == 0 {
		t.Fatalf("no file of tests of the kind %q", want)
	}
	return some
}

// newStage opens a stage that ends with the test.
func newStage(t *testing.T, name string) *stage.Stage {
	t.Helper()
	s, err := stage.New(t.Context(), stage.Options{Name: name, Bin: binary(t), ActionTime: actionTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			if b, err := os.ReadFile(s.Appliance.Log); err == nil {
				t.Logf("appliance:\n%s", b[max(0, len(b)-4000):])
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// where is what the tests are told of an appliance.
func where(url string, tokens map[hardware.Role]string, fingerprint, control string) []string {
	return append(stage.Env(url, tokens, fingerprint), "RACKSTRAP_UI_CONTROL="+control)
}

// node runs a file of tests, each test of which is one of ours in the output.
func node(t *testing.T, file string, limit time.Duration, env []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", file)
	cmd.Dir = root(t)
	cmd.Env = append(append(os.Environ(), "FORCE_COLOR=0", "NO_COLOR=1"), env...)
	// Its browser goes with it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(file), err, bytes.TrimSpace(out))
		return
	}
	t.Logf("%s", bytes.TrimSpace(out))
}

// name of a subtest: the file's, without what all have.
func name(file string) string {
	return strings.SplitN(filepath.Base(file), ".", 2)[0]
}
