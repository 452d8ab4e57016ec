package action

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/workflow"
)

// reboot only asks for it: the worker restarts the machine once the appliance
// has acknowledged this result, else a finished machine would install again.
// That the firmware boots the disk at once only saves time, and no failure there
// is one of the action.
func (h *history) reboot(ctx context.Context, env Env, _ workflow.Reboot) (Result, error) {
	message := "the machine restarts" + h.bootDisk(ctx, env)
	unix.Sync()
	return Result{Message: message, After: Reboot}, nil
}

func powerOff(context.Context, Env, workflow.PowerOff) (Result, error) {
	unix.Sync()
	return Result{Message: "the machine switches off", After: PowerOff}, nil
}
