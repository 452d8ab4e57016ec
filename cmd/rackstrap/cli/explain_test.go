package cli

import (
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

// TestTyped: every command that an explanation, an issue or a check names is one.
func TestTyped(t *testing.T) {
	t.Parallel()
	n := 0
	for _, line := range workflow.Typed("m1") {
		words := strings.Fields(line)
		if words[0] != "rackstrap" {
			continue
		}
		n++
		root := (&app{Env: Env{Getenv: func(string) string { return "" }}}).root(nil)
		cmd, rest, err := root.Find(words[1:])
		if err != nil || cmd == root || cmd.HasSubCommands() {
			t.Errorf("%s: there is no such command (%v)", line, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n < 15 {
		t.Errorf("%d commands only", n)
	}
}
