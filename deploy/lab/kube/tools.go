package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BinEnv names the folder of the binaries, where they are somewhere else than
// deploy/capi/env/build puts them.
const BinEnv = "RACKSTRAP_CAPI_BIN"

const module = "github.com/rackstrap/rackstrap"

// Tools returns the folder with etcd, the Kubernetes binaries, the Cluster API's
// managers and clusterctl. What is missing is built, which takes minutes the first
// time; say is told. It needs the source tree, and works from any module that
// requires ours.
func Tools(ctx context.Context, say func(string)) (string, error) {
	if dir := os.Getenv(BinEnv); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
			return "", fmt.Errorf("%s=%s: %w (make capi-env prints the folder)", BinEnv, dir, err)
		}
		return dir, nil
	}
	root, err := Source(ctx)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "deploy/capi/env/build"))
	var out bytes.Buffer
	said := &lines{say: say}
	cmd.Stdout, cmd.Stderr = &out, said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("deploy/capi/env/build: %w\n%s", err, said.last())
	}
	return strings.TrimSpace(out.String()), nil
}

// Source is the root of our source tree.
func Source(ctx context.Context) (string, error) { return moduleDir(ctx, ".", module) }

// moduleDir is where the files of a module are that the module in dir requires.
func moduleDir(ctx context.Context, dir, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil && len(bytes.TrimSpace(out)) == 0 {
		err = errors.New("it is not downloaded (run: go mod download)")
	}
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w: %s", path, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// lines hands on what is written to it line by line, and remembers it.
type lines struct {
	say func(string)
	all bytes.Buffer
	cut int // up to where of all was handed on
}

var _ io.Writer = (*lines)(nil)

func (l *lines) Write(b []byte) (int, error) {
	l.all.Write(b)
	for {
		rest := l.all.Bytes()[l.cut:]
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			return len(b), nil
		}
		if l.say != nil {
			l.say(string(rest[:n]))
		}
		l.cut += n + 1
	}
}

func (l *lines) last() string {
	all := strings.Split(strings.TrimSpace(l.all.String()), "\n")
	return strings.Join(all[max(0, len(all)-20):], "\n")
}
