package action

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rackstrap/rackstrap/worker/action/fat"
	"github.com/rackstrap/rackstrap/worker/action/partition"
	"github.com/rackstrap/rackstrap/workflow"
)

// seedLabel is what the readers of a NoCloud seed look for: cloud-init by the label
// of the file system, Talos by that or the partition's.
const seedLabel = "cidata"

// seedPartition writes a NoCloud seed into a partition of its own at the end of the
// disk. The file system is complete before the partition appears.
func seedPartition(ctx context.Context, env Env, o workflow.SeedPartition) (Result, error) {
	if o.MetaData == "" {
		return Result{}, permanentf("metaData is empty: a seed needs an instance-id")
	}
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
	files := seedFiles(o)
	fs, err := fat.Make(seedLabel, dev.sector, files)
	if err != nil {
		return Result{}, permanentf("seed: %w", err)
	}
	added, err := partition.Add(dev.layout(), seedLabel, fat.Size)
	if err != nil {
		return Result{}, permanentf("disk %s: %w", d.path, err)
	}
	if err := onlySeed(dev, added.Entry); err != nil {
		return Result{}, err
	}
	out := Result{Disk: d.path}
	if out.WrittenBytes, err = writeSeed(dev, added, fs); err != nil {
		return out, err
	}
	if err := rescan(ctx, d, dev); err != nil {
		return out, err
	}
	verb := "added"
	if added.Existed {
		verb = "rewrote"
	}
	out.Message = fmt.Sprintf("%s partition %d of %s with the seed, and read it back", verb, added.Number, d.path)
	for _, f := range files {
		env.Log.Info("file in the seed", "path", f.Name, "bytes", len(f.Content))
	}
	env.Log.Info("seed partition written and read back", "disk", d.path, "partition", added.Number, "existed", added.Existed, "start", added.Start, "bytes", added.End-added.Start)
	return out, nil
}

func seedFiles(o workflow.SeedPartition) []fat.File {
	files := []fat.File{
		{Name: "meta-data", Content: []byte(o.MetaData)},
		{Name: "user-data", Content: []byte(o.UserData)},
	}
	for _, f := range []fat.File{
		{Name: "network-config", Content: []byte(o.NetworkConfig)},
		{Name: "vendor-data", Content: []byte(o.VendorData)},
	} {
		if len(f.Content) > 0 {
			files = append(files, f)
		}
	}
	return files
}

// onlySeed refuses a disk with another seed: which of two a system reads is chance.
func onlySeed(dev *device, own partition.Entry) error {
	table, err := partition.Read(dev.layout())
	if err != nil {
		return err
	}
	for _, e := range table.Entries {
		if e.Start == own.Start {
			continue
		}
		label := identify(io.NewSectionReader(dev, e.Start, e.End-e.Start)).label
		if strings.EqualFold(e.Name, seedLabel) || strings.EqualFold(label, seedLabel) {
			return permanentf("partition %d of %s is labelled %s, too: the system might read that one (use an image without it)", e.Number, dev.path, seedLabel)
		}
	}
	return nil
}

// writeSeed writes the file system, then the table, each to the medium before the
// next, and reads the file system back.
func writeSeed(dev *device, added partition.Addition, fs []byte) (written int64, err error) {
	// All of it: nothing of a file system that was here before may show.
	if err := dev.zero(extent{added.Start, added.End - added.Start}); err != nil {
		return 0, err
	}
	all := append([]partition.Write{{Offset: added.Start, Data: fs}}, added.Writes...)
	for _, w := range all {
		if err := dev.writeAny(w.Data, w.Offset); err != nil {
			return written, err
		}
		if err := dev.flush(); err != nil {
			return written, err
		}
		written += int64(len(w.Data))
	}
	dev.dropCache()
	back := make([]byte, len(fs))
	if _, err := dev.ReadAt(back, added.Start); err != nil {
		return written, fmt.Errorf("read the seed on %s back: %w", dev.path, err)
	}
	if !bytes.Equal(back, fs) {
		return written, permanentf("disk %s does not return what was written to it (it is broken: replace it)", dev.path)
	}
	return written, nil
}
