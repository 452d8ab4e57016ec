package action

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/workflow"
)

// reboot only asks for it: the worker restarts the machine once the appliance
// has acknowledged this result, else a finished machine would install again.
func reboot(context.Context, Env, workflow.Reboot) (Result, error) {
	unix.Sync()
	return Result{Message: "the machine restarts", After: Reboot}, nil
}

func powerOff(context.Context, Env, workflow.PowerOff) (Result, error) {
	unix.Sync()
	return Result{Message: "the machine switches off", After: PowerOff}, nil
}
