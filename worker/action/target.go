package action

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/workflow"
)

// target is the mounted file system of the installed system.
type target struct {
	*tree
	part partInfo
	disk disk
	dir  string
}

// subvolumes are where the root is when it is not at the top of a btrfs:
// Fedora's and openSUSE's or Ubuntu's naming.
var subvolumes = []string{"", "subvol=root", "subvol=@"}

// openTarget finds and mounts the partition for writing.
func openTarget(ctx context.Context, env Env, sel workflow.Disk, which workflow.Partition) (*target, error) {
	d, err := env.disk(sel)
	if err != nil {
		return nil, err
	}
	if err := d.inUse(); err != nil {
		return nil, err
	}
	parts, err := partitions(d)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, permanentf("disk %s has no partitions (write an image first)", d.path)
	}
	if which == "" || which == workflow.PartitionRoot {
		return openRoot(ctx, env, d, parts)
	}
	p, err := choosePartition(parts, which)
	if err != nil {
		return nil, fmt.Errorf("disk %s: %w", d.path, err)
	}
	fs, err := identifyPath(p.path)
	if err != nil {
		return nil, err
	}
	if fs.kind == "" {
		return nil, permanentf("partition %s has no file system that can be mounted (ext4, xfs, btrfs or vfat)", p.path)
	}
	return mountTarget(env, d, p, fs, "", false)
}

// choosePartition finds a partition by number, GPT name or file system label.
func choosePartition(parts []partInfo, which workflow.Partition) (partInfo, error) {
	var found []partInfo
	for _, p := range parts {
		match := strconv.Itoa(p.number) == string(which)
		if label, ok := strings.CutPrefix(string(which), "label="); ok {
			match = p.label == label
		} else if label, ok := strings.CutPrefix(string(which), "fs="); ok {
			fs, err := identifyPath(p.path)
			match = err == nil && fs.label == label
		}
		if match {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return partInfo{}, permanentf("no partition is %q; found %s", which, listPartitions(parts))
	}
	return partInfo{}, permanentf("partition %q is not unique, refusing to guess between %s (use a number)", which, listPartitions(found))
}

// openRoot mounts the one partition that holds /etc/os-release.
func openRoot(ctx context.Context, env Env, d disk, parts []partInfo) (*target, error) {
	type candidate struct {
		part    partInfo
		fs      filesystem
		options string
	}
	var found []candidate
	var problems []error
	for _, p := range parts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fs, err := identifyPath(p.path)
		if err != nil || fs.kind == "" || fs.kind == "vfat" {
			continue
		}
		for _, options := range subvolumes {
			if options != "" && fs.kind != "btrfs" {
				break
			}
			t, err := mountTarget(env, d, p, fs, options, true)
			if err != nil {
				if options == "" {
					env.Log.Warn("partition not looked into", "partition", p.path, "error", err)
					problems = append(problems, err)
				}
				continue
			}
			holds := t.exists("etc/os-release")
			env.Log.Info("looked for the root", "partition", p.path, "filesystem", fs.kind, "options", options, "has_os_release", holds)
			if err := t.Close(); err != nil {
				return nil, err
			}
			if holds {
				found = append(found, candidate{p, fs, options})
				break
			}
		}
	}
	switch len(found) {
	case 1:
		return mountTarget(env, d, found[0].part, found[0].fs, found[0].options, false)
	case 0:
		err := permanentf("no partition of %s holds /etc/os-release; found %s (set partition:; encrypted and LVM roots are not supported)",
			d.path, listPartitions(parts))
		return nil, errors.Join(append([]error{err}, problems...)...)
	}
	return nil, permanentf("partitions %s and %s both hold /etc/os-release, refusing to guess (set partition: to a number)",
		found[0].part.path, found[1].part.path)
}

func mountTarget(env Env, d disk, p partInfo, fs filesystem, options string, readOnly bool) (*target, error) {
	if err := os.MkdirAll(env.Sys.mount(), 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(env.Sys.mount(), "target-")
	if err != nil {
		return nil, err
	}
	if err := mountAt(env, p.path, fs.kind, dir, options, readOnly); err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	t := &target{part: p, disk: d, dir: dir}
	if t.tree, err = openTree(dir); err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = os.Remove(dir)
		return nil, err
	}
	if !readOnly {
		t.log = env.Log
		env.Log.Info("mounted", "partition", p.path, "partition_bytes", p.size, "label", p.label, "filesystem", fs.kind, "filesystem_label", fs.label, "options", options)
	}
	return t, nil
}

// Close writes everything to the medium and unmounts. What was written counts
// only when it succeeds.
func (t *target) Close() error {
	syncErr := t.sync()
	t.tree.close()
	if err := unmount(t.dir); err != nil {
		_ = unix.Unmount(t.dir, unix.MNT_DETACH)
		return errors.Join(syncErr, fmt.Errorf("unmount %s: %w", t.part.path, err))
	}
	if syncErr != nil {
		return fmt.Errorf("write %s: %w", t.part.path, syncErr)
	}
	_ = os.Remove(t.dir)
	t.log.Info("flushed and unmounted", "partition", t.part.path)
	return nil
}

// unmount waits out a file system that is busy for a moment: a process that is
// just being started holds copies of all descriptors until its exec closes them.
func unmount(dir string) error {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		err := unix.Unmount(dir, 0)
		if !errors.Is(err, unix.EBUSY) || wait > 2*time.Second {
			return err
		}
		time.Sleep(wait)
	}
}

// withTarget mounts, calls f, and unmounts; f is only a success when all is.
func withTarget(ctx context.Context, env Env, sel workflow.Disk, which workflow.Partition, f func(*target) (Result, error)) (Result, error) {
	t, err := openTarget(ctx, env, sel, which)
	if err != nil {
		return Result{}, err
	}
	out, err := f(t)
	out.Disk = t.disk.path
	return out, errors.Join(err, t.Close())
}

func listPartitions(parts []partInfo) string {
	var s []string
	for _, p := range parts {
		text := p.path + " (" + bytesText(p.size)
		if p.label != "" {
			text += ", label " + p.label
		}
		if fs, err := identifyPath(p.path); err == nil && fs.kind != "" {
			text += ", " + fs.kind
			if fs.label != "" {
				text += " " + fs.label
			}
		}
		s = append(s, text+")")
	}
	return strings.Join(s, ", ")
}
