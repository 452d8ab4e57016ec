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
	env.Log.Info("everything is flushed", "next", "restart, once the appliance has acknowledged")
	return Result{Message: message, After: Reboot}, nil
}

func powerOff(_ context.Context, env Env, _ workflow.PowerOff) (Result, error) {
	unix.Sync()
	env.Log.Info("everything is flushed", "next", "switch off, once the appliance has acknowledged")
	return Result{Message: "the machine switches off", After: PowerOff}, nil
}
