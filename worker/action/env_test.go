package action

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

// need skips a test that cannot run here, or fails it where nothing may be
// skipped.
func need(t testing.TB, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func needRoot(t testing.TB) { t.Helper(); need(t, os.Geteuid() == 0, "needs root for loop devices") }

// run runs a program that the test needs.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	need(t, err == nil, name+" is not installed")
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// fakeDisk is a disk of a fake machine: a file with a fake /sys/block entry.
type fakeDisk struct {
	name  string
	size  int64
	attrs map[string]string
}

// fakeMachine makes files that stand for disks. They are filled with 0xff, so
// that what was not written shows.
func fakeMachine(t testing.TB, all ...fakeDisk) Env {
	t.Helper()
	dir := t.TempDir()
	env := Env{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Sys: Sys{Block: dir + "/block", Dev: dir + "/dev", Mount: dir + "/mnt"},
	}
	for _, d := range all {
		write := func(name, content string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(filepath.Join(env.Sys.Block, d.name, "size"), strconv.FormatInt(d.size/512, 10))
		for name, content := range d.attrs {
			write(filepath.Join(env.Sys.Block, d.name, name), content)
		}
		if d.size < 1<<30 {
			write(filepath.Join(env.Sys.Dev, d.name), strings.Repeat("\xff", int(d.size)))
		}
	}
	return env
}

// loopDisk makes a disk of the kernel with partitions; the environment shows
// only the machine's real /sys and /dev, so actions must name the path. Tests that
// use one are not parallel: loop devices are handed on from test to test, and a
// process that another test starts can hold one for the moment of its fork.
func loopDisk(t testing.TB, size int64) (path string, env Env) {
	t.Helper()
	needRoot(t)
	backing := filepath.Join(t.TempDir(), "backing")
	f, err := os.Create(backing)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	path = run(t, "losetup", "--find", "--show", "--partscan", backing)
	t.Cleanup(func() { run(t, "losetup", "--detach", path) })
	return path, Env{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Sys: Sys{Mount: t.TempDir()}}
}

// act runs one action as the worker does.
func act(t testing.TB, ctx context.Context, env Env, kind workflow.Kind, options workflow.Options) (Result, error) {
	t.Helper()
	b, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	return Runners()[kind].Run(ctx, env, b)
}

// mustAct is act for what has to succeed.
func mustAct(t testing.TB, env Env, kind workflow.Kind, options workflow.Options) Result {
	t.Helper()
	r, err := act(t, t.Context(), env, kind, options)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return r
}

// systemImage makes the file of a disk as cloud images are: GPT, an ESP without
// a system, and a root file system with the given files.
func systemImage(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	root, image := filepath.Join(dir, "root"), filepath.Join(dir, "image")
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(to, path)
		} else if content == "directory" {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(image, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64*mib); err != nil {
		t.Fatal(err)
	}
	run(t, "sgdisk", "-n1:1M:+8M", "-c1:other", "-n2:9M:+50M", "-c2:root", image)
	run(t, "mkfs.ext4", "-q", "-F", "-L", "otherfs", "-E", "offset=1048576", image, "8M")
	run(t, "mkfs.ext4", "-q", "-F", "-L", "rootfs", "-d", root, "-E", "offset=9437184", image, "50M")
	return image
}

func newTestLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
