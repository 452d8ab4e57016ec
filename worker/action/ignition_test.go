package action

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

// exact is a config whose bytes matter: spaces, escapes and no newline at the end.
const exact = "{ \"ignition\" : {\"version\":\"3.4.0\"},\r\n\t\"x\": \"\\u00e9 é <&>\" }"

// withFilesystems makes a loop disk with one file system a partition: what mkfs is
// called with, and the files in it.
func withFilesystems(t *testing.T, parts ...[]string) (workflow.Disk, Env) {
	t.Helper()
	path, env := loopDisk(t, 512*mib)
	args := []string{"-o"}
	for i, p := range parts {
		args = append(args, fmt.Sprintf("-n%d:0:+130M", i+1), fmt.Sprintf("-c%d:%s", i+1, p[0]))
	}
	run(t, "sgdisk", append(args, path)...)
	run(t, "partprobe", path)
	for i, p := range parts {
		root := t.TempDir()
		for _, name := range p[2:] {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		part := path + "p" + string(rune('1'+i))
		switch kind, label, _ := strings.Cut(p[1], " "); kind {
		case "ext4":
			run(t, "mkfs.ext4", "-q", "-F", "-L", label, "-d", root, part)
		case "btrfs":
			run(t, "mkfs.btrfs", "-q", "-f", "-L", label, "-r", root, part)
		case "vfat":
			run(t, "mkfs.vfat", "-n", label, part)
		}
	}
	return workflow.Disk(path), env
}

func TestIgnition(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts [][]string
		part  string // where it is written
		path  string
		wrong string
	}{
		{"Fedora CoreOS", [][]string{{"EFI-SYSTEM", "vfat EFI-SYSTEM"}, {"boot", "ext4 boot", "ignition.firstboot"}, {"root", "ext4 root"}}, "p2", "ignition/config.ign", ""},
		{"Flatcar on btrfs", [][]string{{"EFI-SYSTEM", "vfat EFI-SYSTEM"}, {"OEM", "btrfs OEM", "grub.cfg"}}, "p2", "config.ign", ""},
		{"Flatcar on ext4", [][]string{{"OEM", "ext4 OEM", "config.ign"}, {"ROOT", "ext4 ROOT"}}, "p1", "config.ign", ""},
		{"by the name of the partition", [][]string{{"OEM", "ext4 other"}}, "p1", "config.ign", ""},
		{"the file system's label counts more", [][]string{{"boot", "ext4 x"}, {"y", "ext4 OEM"}}, "p2", "config.ign", ""},
		{"started before", [][]string{{"boot", "ext4 boot", "loader/x"}}, "", "", "no /ignition.firstboot"},
		{"no such system", [][]string{{"root", "ext4 cloudimg"}}, "", "", "looked for a file system or partition labelled boot (Fedora CoreOS) or OEM (Flatcar), found"},
		{"two", [][]string{{"a", "ext4 OEM"}, {"b", "ext4 OEM"}}, "", "", "refusing to guess"},
		{"no file system", [][]string{{"OEM", "none"}}, "", "", "no file system that can be mounted"},
		{"no partitions", nil, "", "", "found none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, env := withFilesystems(t, tt.parts...)
			for range 2 { // a retry does the same
				r, err := act(t, t.Context(), env, workflow.KindIgnition, &workflow.Ignition{Disk: d, Config: exact})
				if tt.wrong != "" {
					if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), tt.wrong) {
						t.Errorf("got %v", err)
					}
					continue
				}
				if err != nil || r.WrittenBytes != int64(len(exact)) || r.Disk != string(d) || !strings.HasSuffix(r.Message, string(d)+tt.part) {
					t.Fatalf("%+v, %v", r, err)
				}
				dev, err := env.disk(d)
				if err != nil {
					t.Fatal(err)
				}
				fs, err := identifyPath(string(d) + tt.part)
				if err != nil {
					t.Fatal(err)
				}
				tg, err := mountTarget(env, dev, partInfo{path: string(d) + tt.part}, fs, "", true)
				if err != nil {
					t.Fatal(err)
				}
				b, err := tg.read(tt.path)
				if string(b) != exact || err != nil {
					t.Errorf("%q, %v", b, err)
				}
				if info, err := tg.info(tt.path); err != nil || info.Mode() != 0o600 {
					t.Errorf("%v, %v", info, err)
				}
				if err := tg.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What is no config is refused before a disk is looked at.
func TestIgnitionConfigRefused(t *testing.T) {
	t.Parallel()
	_, err := act(t, t.Context(), fakeMachine(t), workflow.KindIgnition, &workflow.Ignition{Config: "variant: fcos"})
	if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "config is not JSON") {
		t.Errorf("got %v", err)
	}
}
