package lab

import (
	"fmt"
	"os"
	"os/exec"
)

// NoSkipEnv is the variable that, set to 1, turns a skipped lab test into a
// failed one.
const NoSkipEnv = "RACKSTRAP_TEST_NOSKIP"

// TB is the part of testing.TB that Require needs.
type TB interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Require skips the test unless it runs as root, can have network namespaces,
// and finds the tools. With RACKSTRAP_TEST_NOSKIP=1 it fails it instead.
func Require(t TB, tools ...string) {
	t.Helper()
	why := missing(tools)
	switch {
	case why == nil:
	case os.Getenv(NoSkipEnv) == "1":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

func missing(tools []string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("a lab needs root for its network namespace (run the tests as root)")
	}
	for _, tool := range append([]string{"ip"}, tools...) {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed (go run ./deploy/lab/cmd/labsetup installs what the lab needs)", tool)
		}
	}
	for _, path := range []string{"/proc/self/ns/net", "/dev/net/tun"} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("this kernel has no %s", path)
		}
	}
	return nil
}
