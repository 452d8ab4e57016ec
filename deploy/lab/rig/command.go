package rig

import (
	"context"
	"os"
	"os/exec"
)

// Command is a command line of the appliance's own binary for its daemon, as an
// operator would type it after `rackstrap`. It is not started.
func (a *Appliance) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, a.bin, args...)
	cmd.Env = append(os.Environ(), "RACKSTRAP_SOCKET="+a.Socket)
	return cmd
}
