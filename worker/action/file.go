package action

import (
	"context"
	"fmt"
	"os"

	"github.com/rackstrap/rackstrap/workflow"
)

// fileWrite writes one file into the installed system.
func fileWrite(ctx context.Context, env Env, o workflow.FileWrite) (Result, error) {
	mode, err := o.FileMode()
	if err != nil {
		return Result{}, permanent(err)
	}
	return withTarget(ctx, env, o.Disk, o.Partition, func(t *target) (Result, error) {
		err := t.write(file{o.Path, []byte(o.Content), os.FileMode(mode), o.UID, o.GID})
		return Result{
			Message:      fmt.Sprintf("wrote %s on %s", o.Path, t.part.path),
			WrittenBytes: int64(len(o.Content)),
		}, err
	})
}
