package action

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/worker/action/partition"
	"github.com/rackstrap/rackstrap/workflow"
)

// cloudSystem is what a cloud image holds, with what its maker left behind.
var cloudSystem = map[string]string{
	"usr/lib/os-release":                           "ID=test\n",
	"etc/os-release":                               "-> ../usr/lib/os-release",
	"usr/bin/cloud-init":                           "#!/bin/sh\n",
	"etc/machine-id":                               "0123456789abcdef0123456789abcdef\n",
	"var/lib/dbus/machine-id":                      "-> /etc/machine-id",
	"var/lib/cloud/instances/old/boot-finished":    "x",
	"var/lib/cloud/instance":                       "-> instances/old",
	"var/lib/cloud/data/previous-instance-id":      "old",
	"etc/cloud/cloud.cfg.d/90_dpkg.cfg":            "datasource_list: [ Ec2, None ]\n",
	"etc/cloud/cloud.cfg.d/99-disable-network.cfg": "network: {config: disabled}\n",
	"etc/cloud/cloud-init.disabled":                "",
	"etc/netplan":                                  "directory",
	"etc/link":                                     "-> /etc/linked",
	"etc/linked":                                   "target",
	"etc/out":                                      "-> ../../../../../../../tmp",
	"etc/dangling":                                 "-> /nowhere/at/all",
	"srv":                                          "-> /var/data",
	"var/data/keep":                                "x",
	"tmp":                                          "directory",
}

const testNetwork = `version: 2
ethernets:
  nic0:
    match: {macaddress: "52:54:00:12:34:56"}
    addresses: [192.0.2.5/24]
`

// packedSystem is a systemImage as it is served.
func packedSystem(t *testing.T, files map[string]string) []byte {
	t.Helper()
	image, err := os.ReadFile(systemImage(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return compress(t, image)
}

// install writes a system image to a loop disk through the real action.
func install(t *testing.T, files map[string]string) (workflow.Disk, Env) {
	t.Helper()
	needRoot(t)
	server := httptest.NewServer(&faults{body: packedSystem(t, files)})
	defer server.Close()
	path, env := loopDisk(t, 128*mib)
	env.HTTPBase = server.URL
	mustAct(t, env, workflow.KindImageWrite, &workflow.ImageWrite{Disk: workflow.Disk(path), Image: "/image"})
	return workflow.Disk(path), env
}

// look mounts the root of the disk as a reader.
func look(t *testing.T, env Env, d workflow.Disk) *target {
	t.Helper()
	tg, err := openTarget(t.Context(), env, d, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	return tg
}

// The whole of an install, on a real block device.
func TestInstall(t *testing.T) {
	d, env := install(t, cloudSystem)
	mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: d}) // and once more, over a system
	server := httptest.NewServer(&faults{body: packedSystem(t, cloudSystem)})
	defer server.Close()
	env.HTTPBase = server.URL
	mustAct(t, env, workflow.KindImageWrite, &workflow.ImageWrite{Disk: d, Image: "/image"})

	g := mustAct(t, env, workflow.KindDiskGrow, &workflow.DiskGrow{Disk: d})
	if !strings.Contains(g.Message, "partition 2") {
		t.Errorf("grow: %+v", g)
	}
	if out := run(t, "sgdisk", "-v", string(d)); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk -v: %s", out)
	}
	found, err := env.disk(d)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := partitions(found)
	if err != nil || len(parts) != 2 || parts[1].size != 118*mib || parts[1].label != "root" {
		t.Errorf("the kernel sees %+v, %v", parts, err)
	}
	if g := mustAct(t, env, workflow.KindDiskGrow, &workflow.DiskGrow{Disk: d}); g.WrittenBytes != 0 {
		t.Errorf("growing again: %+v", g)
	}

	n := mustAct(t, env, workflow.KindNetworkConfig, &workflow.NetworkConfig{Disk: d, Config: testNetwork})
	if !strings.Contains(n.Message, "nocloud") {
		t.Errorf("network: %+v", n)
	}
	mustAct(t, env, workflow.KindCloudInit, &workflow.CloudInit{Disk: d, UserData: "#cloud-config\nx: 1\n", MetaData: "instance-id: i-1\n", VendorData: "v"})
	mustAct(t, env, workflow.KindFileWrite, &workflow.FileWrite{Disk: d, Path: "/srv/new/secret", Content: "s", Mode: "4710", UID: 12, GID: 34})

	tg := look(t, env, d)
	for name, want := range map[string]string{
		seedDir + "/network-config": testNetwork,
		seedDir + "/meta-data":      "instance-id: i-1\n",
		seedDir + "/user-data":      "#cloud-config\nx: 1\n",
		seedDir + "/vendor-data":    "v",
		pinFile:                     pin,
		"etc/machine-id":            "",
		"var/data/new/secret":       "s",
	} {
		if b, err := tg.read(name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{
		"var/lib/cloud/instances", "var/lib/cloud/data", "etc/cloud/cloud-init.disabled", "etc/cloud/cloud.cfg.d/99-disable-network.cfg",
	} {
		if tg.exists(name) {
			t.Errorf("%s is still there", name)
		}
	}
	for name, want := range map[string]os.FileMode{
		seedDir + "/user-data":      0o600,
		seedDir + "/network-config": 0o600,
		seedDir:                     os.ModeDir | 0o755,
		pinFile:                     0o644,
		"var/data/new/secret":       os.ModeSetuid | 0o710,
	} {
		if info, err := tg.info(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(env.Sys.Mount, "*")); len(left) != 1 {
		t.Errorf("mount points left: %v", left)
	}
}

func TestFileWriteStaysInside(t *testing.T) {
	d, env := install(t, cloudSystem)
	write := func(path string) error {
		_, err := act(t, t.Context(), env, workflow.KindFileWrite, &workflow.FileWrite{Disk: d, Path: path, Content: "new"})
		return err
	}
	for _, path := range []string{"/etc/link", "/etc/out/escaped-rackstrap-test", "/etc/deep/er/file"} {
		if err := write(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, says := range map[string]string{
		"/etc/cloud":           "is a directory",
		"/etc/dangling/x":      "broken link",
		"/etc/machine-id/file": "not a directory",
	} {
		if err := write(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
	tg := look(t, env, d)
	if info, err := tg.info("etc/link"); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link was followed: %v, %v", info, err)
	}
	if b, _ := tg.read("etc/linked"); string(b) != "target" {
		t.Errorf("the link was followed: %q", b)
	}
	if _, err := os.Stat("/tmp/escaped-rackstrap-test"); err == nil {
		t.Fatal("wrote outside of the target")
	}
	if b, err := tg.read("tmp/escaped-rackstrap-test"); err != nil || string(b) != "new" {
		t.Errorf("as a root, the link leads to the target's own /tmp: %q, %v", b, err)
	}
}

func TestPartitionSelectors(t *testing.T) {
	d, env := install(t, cloudSystem)
	for _, tt := range []struct {
		which workflow.Partition
		want  string
		wrong string
	}{
		{"", "p2", ""},
		{"root", "p2", ""},
		{"1", "p1", ""},
		{"label=other", "p1", ""},
		{"fs=rootfs", "p2", ""},
		{"7", "", "label root"},
		{"fs=none", "", "ext4 otherfs"},
	} {
		r, err := act(t, t.Context(), env, workflow.KindFileWrite, &workflow.FileWrite{Disk: d, Partition: tt.which, Path: "/probe", Content: "x"})
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || !IsPermanent(err) {
				t.Errorf("%q: %v, want %q", tt.which, err, tt.wrong)
			}
			continue
		}
		if err != nil || !strings.HasSuffix(r.Message, string(d)+tt.want) {
			t.Errorf("%q: %+v, %v", tt.which, r, err)
		}
	}
}

func TestNoRoot(t *testing.T) {
	d, env := install(t, map[string]string{"etc/motd": "hello"})
	for _, kind := range []workflow.Kind{workflow.KindFileWrite, workflow.KindCloudInit, workflow.KindNetworkConfig} {
		options := map[workflow.Kind]workflow.Options{
			workflow.KindFileWrite:     &workflow.FileWrite{Disk: d, Path: "/x"},
			workflow.KindCloudInit:     &workflow.CloudInit{Disk: d, MetaData: "instance-id: x"},
			workflow.KindNetworkConfig: &workflow.NetworkConfig{Disk: d, Config: testNetwork},
		}
		if _, err := act(t, t.Context(), env, kind, options[kind]); err == nil || !strings.Contains(err.Error(), "holds /etc/os-release") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestRenderers(t *testing.T) {
	t.Parallel()
	release := map[string]string{"etc/os-release": "ID=x\n"}
	for _, tt := range []struct {
		name  string
		files map[string]string
		asked string
		check string // a file that has to be there
		has   string
		wrong string
	}{
		{"netplan", map[string]string{"etc/netplan": "directory"}, "", "etc/netplan/99-rackstrap.yaml", "network:\n  version: 2", ""},
		{"networkd", map[string]string{"usr/lib/systemd/systemd-networkd": "x", "usr/lib/systemd/system/systemd-networkd.service": "x"}, "auto", "etc/systemd/network/10-rackstrap-0.network", "Address=192.0.2.5/24", ""},
		{"asked", map[string]string{"etc/netplan": "directory"}, "networkd", "etc/systemd/network/10-rackstrap-0.network", "MACAddress=52:54:00:12:34:56", ""},
		{"nocloud without a cloudinit action", map[string]string{"usr/bin/cloud-init": "x"}, "", seedDir + "/meta-data", "instance-id: rackstrap-", ""},
		{"none", nil, "", "", "", "neither cloud-init nor netplan"},
		{"pinned with other things", map[string]string{"usr/bin/cloud-init": "x", "etc/cloud/cloud.cfg.d/50.cfg": "network: {config: disabled}\nusers: []\n"}, "", "", "", "50.cfg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, content := range merged(release, tt.files) {
				path := filepath.Join(dir, name)
				if content == "directory" {
					content, path = "", filepath.Join(path, "x")
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			tr, err := openTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.close()
			renderer, err := chooseRenderer(tr, tt.asked)
			if err == nil {
				err = render(fakeMachine(t), tr, renderer, testNetwork)
			}
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if b, err := tr.read(tt.check); err != nil || !strings.Contains(string(b), tt.has) {
				t.Errorf("%s: %q, %v", tt.check, b, err)
			}
		})
	}
}

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func TestGrowErrors(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{name: "sda", size: 8 * mib})
	_, err := act(t, t.Context(), env, workflow.KindDiskGrow, &workflow.DiskGrow{})
	if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), partition.ErrNone.Error()) {
		t.Errorf("got %v", err)
	}
}
