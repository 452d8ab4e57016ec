package action

import (
	"context"
	"fmt"

	"github.com/rackstrap/rackstrap/worker/action/partition"
	"github.com/rackstrap/rackstrap/workflow"
)

// diskGrow extends the last partition to the end of the disk. The file system
// in it follows at the first boot of the installed system.
func diskGrow(ctx context.Context, env Env, o workflow.DiskGrow) (Result, error) {
	d, err := env.disk(o.Disk)
	if err != nil {
		return Result{}, err
	}
	if err := d.inUse(); err != nil {
		return Result{}, err
	}
	dev, err := openDevice(d.path)
	if err != nil {
		return Result{}, err
	}
	defer dev.Close()
	g, err := partition.Grow(dev.layout())
	if err != nil {
		return Result{}, permanentf("grow %s: %w", d.path, err)
	}
	out := Result{Disk: d.path}
	for _, w := range g.Writes {
		if err := dev.writeAny(w.Data, w.Offset); err != nil {
			return out, err
		}
		// One after the other on the medium: the order is what keeps a valid
		// table there when the power fails.
		if err := dev.flush(); err != nil {
			return out, err
		}
		out.WrittenBytes += int64(len(w.Data))
	}
	if err := rescan(ctx, d, dev); err != nil {
		return out, err
	}
	out.Message = fmt.Sprintf("partition %d of %s grew from %s to %s; its file system grows when the system boots",
		g.Number, d.path, bytesText(g.Before), bytesText(g.After))
	if g.After == g.Before {
		out.Message = fmt.Sprintf("partition %d of %s already reaches the end of the disk", g.Number, d.path)
	}
	env.Log.Info("partition table", "disk", d.path, "scheme", string(g.Scheme), "partition", g.Number, "before", g.Before, "after", g.After)
	return out, nil
}
