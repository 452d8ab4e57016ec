package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain runs main itself when the test starts its own program again.
func TestMain(m *testing.M) {
	if os.Getenv("RACKSTRAP_WORKER_MAIN") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestNotInit: started by a person, the worker touches nothing and says what it is.
func TestNotInit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "is the init of the initramfs"},
		{[]string{"-version"}, 0, "rackstrap-worker devel"},
		{[]string{"--help"}, 2, "rackstrap-worker -version"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], tt.args...)
		cmd.Env = append(os.Environ(), "RACKSTRAP_WORKER_MAIN=1")
		out, err := cmd.CombinedOutput()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != tt.code || !strings.Contains(string(out), tt.want) {
			t.Errorf("%q: code %d, %s", tt.args, code, out)
		}
	}
}
