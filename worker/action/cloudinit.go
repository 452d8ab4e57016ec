package action

import (
	"context"
	"fmt"
	"os"

	"github.com/rackstrap/rackstrap/workflow"
)

const (
	seedDir = "var/lib/cloud/seed/nocloud"
	// pinFile sorts after what distributions ship (90_dpkg.cfg and the like).
	pinFile = "etc/cloud/cloud.cfg.d/99-rackstrap.cfg"
	pin     = "# Written by Rackstrap: this system was installed with a seed on its own disk.\ndatasource_list: [ NoCloud, None ]\n"
)

// stale is what an image may bring along from the machine it was made on, and
// would make its first boot here not be a first boot.
var stale = []string{
	"var/lib/cloud/instance",
	"var/lib/cloud/instances",
	"var/lib/cloud/data",
	"var/lib/cloud/sem",
	"var/lib/cloud/seed/nocloud-net",
	"etc/cloud/cloud-init.disabled",
}

// cloudInit writes the seed and makes cloud-init look nowhere else.
func cloudInit(ctx context.Context, env Env, o workflow.CloudInit) (Result, error) {
	return withTarget(ctx, env, o.Disk, o.Partition, func(t *target) (Result, error) {
		out := Result{Message: "wrote the cloud-init seed on " + t.part.path}
		if !hasCloudInit(t.tree) {
			return out, permanentf("the system on %s has no cloud-init (use an image with it, or file.write)", t.part.path)
		}
		if o.MetaData == "" {
			return out, permanentf("metaData is empty: cloud-init needs an instance-id")
		}
		for _, name := range stale {
			if err := t.remove(name); err != nil {
				return out, err
			}
		}
		if err := forgetMachineID(t.tree); err != nil {
			return out, err
		}
		files := []file{
			seedFile("meta-data", o.MetaData),
			seedFile("user-data", orDefault(o.UserData, "#cloud-config\n")),
			seedFile("vendor-data", o.VendorData),
			{name: pinFile, content: []byte(pin), mode: 0o644},
		}
		for _, f := range files {
			if err := t.write(f); err != nil {
				return out, err
			}
			out.WrittenBytes += int64(len(f.content))
		}
		return out, nil
	})
}

// seedFile is one document of the seed. They hold passwords and keys.
func seedFile(name, content string) file {
	return file{name: seedDir + "/" + name, content: []byte(content), mode: 0o600}
}

func hasCloudInit(t *tree) bool {
	for _, p := range []string{"usr/bin/cloud-init", "usr/local/bin/cloud-init", "usr/sbin/cloud-init", "opt/cloud-init/bin/cloud-init"} {
		if t.exists(p) {
			return true
		}
	}
	return false
}

// forgetMachineID empties a machine ID that the image brings along, so that
// systemd makes a new one (machine-id(5)); D-Bus keeps a copy on old systems.
func forgetMachineID(t *tree) error {
	if info, err := t.info("etc/machine-id"); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if err := t.write(file{name: "etc/machine-id", mode: 0o444}); err != nil {
			return fmt.Errorf("machine-id: %w", err)
		}
	}
	if info, err := t.info("var/lib/dbus/machine-id"); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return t.remove("var/lib/dbus/machine-id")
	}
	return nil
}
