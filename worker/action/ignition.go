package action

import (
	"context"
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/workflow"
)

// ignitionPlace is where a family of systems reads its Ignition config.
type ignitionPlace struct {
	system string
	label  string // of the file system, or else of the GPT partition
	path   string
	// proof is there on a disk that was never started; without it, the config would
	// not be read. Empty where that is told elsewhere.
	proof string
}

// ignitionPlaces are those that coreos-installer and flatcar-install write to.
// Fedora CoreOS and its relatives (RHEL CoreOS, CentOS Stream CoreOS) look into the
// boot file system, Flatcar into that of the OEM; both delete or ignore it after the
// first start.
func ignitionPlaces() []ignitionPlace {
	return []ignitionPlace{
		{"Fedora CoreOS", "boot", "ignition/config.ign", "ignition.firstboot"},
		{"Flatcar", "OEM", "config.ign", ""},
	}
}

// ignition writes the config to where the system on the disk reads it.
func ignition(_ context.Context, env Env, o workflow.Ignition) (Result, error) {
	if err := workflow.ValidIgnition(o.Config); err != nil {
		return Result{}, permanentf("config %w", err)
	}
	d, err := env.disk(o.Disk)
	if err != nil {
		return Result{}, err
	}
	if err := d.inUse(); err != nil {
		return Result{}, err
	}
	parts, err := partitions(d)
	if err != nil {
		return Result{}, err
	}
	place, part, err := findIgnition(parts)
	if err != nil {
		return Result{}, fmt.Errorf("disk %s: %w", d.path, err)
	}
	fs, err := identifyPath(part.path)
	if err != nil {
		return Result{}, err
	}
	if fs.kind == "" {
		return Result{}, permanentf("partition %s (%s) has no file system that can be mounted (ext4, xfs, btrfs or vfat)", part.path, place.label)
	}
	env.Log.Info("place of the Ignition config found", "partition", part.path, "system", place.system, "path", "/"+place.path)
	t, err := mountTarget(env, d, part, fs, "", false)
	if err != nil {
		return Result{}, err
	}
	out := Result{Disk: d.path, Message: fmt.Sprintf("wrote the Ignition config for %s to /%s on %s", place.system, place.path, part.path)}
	err = place.write(t, o.Config)
	if err == nil {
		out.WrittenBytes = int64(len(o.Config))
	}
	return out, errors.Join(err, t.Close())
}

// findIgnition chooses the place by what is on the disk: the label of the file
// system, by which the systems themselves look, before that of the partition.
func findIgnition(parts []partInfo) (ignitionPlace, partInfo, error) {
	for _, label := range []func(partInfo) string{
		func(p partInfo) string { fs, _ := identifyPath(p.path); return fs.label },
		func(p partInfo) string { return p.label },
	} {
		for _, place := range ignitionPlaces() {
			var found []partInfo
			for _, p := range parts {
				if label(p) == place.label {
					found = append(found, p)
				}
			}
			switch len(found) {
			case 0:
			case 1:
				return place, found[0], nil
			default:
				return place, partInfo{}, permanentf("label %q is not unique, refusing to guess between %s", place.label, listPartitions(found))
			}
		}
	}
	have := "none"
	if len(parts) > 0 {
		have = listPartitions(parts)
	}
	return ignitionPlace{}, partInfo{}, permanentf(
		"no system with Ignition: looked for a file system or partition labelled boot (Fedora CoreOS) or OEM (Flatcar), found %s (write such an image first)", have)
}

func (p ignitionPlace) write(t *target, config string) error {
	if p.proof != "" && !t.exists(p.proof) {
		return permanentf("%s has no /%s: this is no image of %s, or one that was started before, and would not read the config (use the raw metal image)", t.part.path, p.proof, p.system)
	}
	return t.write(file{name: p.path, content: []byte(config), mode: 0o600})
}
