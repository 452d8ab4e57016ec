package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed recipe/node-packages.txt
var nodePackages string

//go:embed recipe/node.sh
var nodeScript string

//go:embed recipe/images.sh
var nodeImages string

//go:embed cmd/pause/main.go
var pauseSource string

// pausePackage is the program of pauseSource.
const pausePackage = "github.com/rackstrap/rackstrap/deploy/lab/cmd/pause"

// NodeImage is DebianImage with what kubeadm makes a node of Kubernetes with: containerd
// and runc of Debian, kubelet and kubeadm from the folder bin, and the container images
// of a control plane, which are in containerd's store already. kube-proxy and CoreDNS
// are not among them. bin is what `deploy/capi/env/build` prints.
func NodeImage(ctx context.Context, bin, cacheDir string, progress func(string)) (Image, error) {
	n, err := newNode(ctx, bin)
	if err != nil {
		return Image{}, err
	}
	return makeImage(ctx, n.recipe(imageArches["amd64"]), cacheDir, progress)
}

// NodeVersion is the version of Kubernetes of the binaries in bin: v1.36.3.
func NodeVersion(ctx context.Context, bin string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubelet"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s/kubelet: %w (deploy/capi/env/build makes it and prints its folder)", bin, err)
	}
	_, version, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok {
		return "", fmt.Errorf("kubelet --version says %q", out)
	}
	return version, nil
}

// node is what the node image is made from.
type node struct {
	bin    string
	images []container
	digest string // of the binaries
}

// container is one container image with one program in it.
type container struct{ ref, program string }

func newNode(ctx context.Context, bin string) (node, error) {
	n := node{bin: bin}
	version, err := NodeVersion(ctx, bin)
	if err != nil {
		return n, err
	}
	// The names are those that kubeadm will ask for.
	list, err := exec.CommandContext(ctx, filepath.Join(bin, "kubeadm"), "config", "images", "list", "--kubernetes-version", version).Output()
	if err != nil {
		return n, fmt.Errorf("kubeadm config images list: %w", err)
	}
	for _, ref := range strings.Fields(string(list)) {
		program, _, _ := strings.Cut(ref[strings.LastIndexByte(ref, '/')+1:], ":")
		if _, err := os.Stat(filepath.Join(bin, program)); err == nil || program == "pause" {
			n.images = append(n.images, container{ref, program})
		}
	}
	if len(n.images) != 5 {
		return n, fmt.Errorf("%s: has the programs of %d container images, want 5: %v", bin, len(n.images), n.images)
	}
	h := sha256.New()
	for _, c := range append(n.images, container{program: "kubelet"}, container{program: "kubeadm"}) {
		if c.program == "pause" {
			continue
		}
		sum, _, err := hashFile(filepath.Join(bin, c.program))
		if err != nil {
			return n, err
		}
		fmt.Fprintln(h, c.ref, c.program, sum)
	}
	n.digest = fmt.Sprintf("%x", h.Sum(nil))
	return n, nil
}

func (n node) recipe(a imageArch) recipe {
	r := debianRecipe(a)
	r.name = "node-" + r.name
	r.packages += nodePackages
	r.script += strings.ReplaceAll(nodeScript, "@PAUSE@", n.ref("pause"))
	r.inputs = []string{n.digest, nodeImages, pauseSource, archiveVersion}
	r.add = n.add
	return r
}

// ref is the name of the image with that program.
func (n node) ref(program string) string {
	for _, c := range n.images {
		if c.program == program {
			return c.ref
		}
	}
	return ""
}

// add puts the binaries into the root and the container images into its containerd.
func (n node) add(ctx context.Context, work, root string) error {
	for _, program := range []string{"kubelet", "kubeadm"} {
		if err := run(ctx, "install", "-m", "0755", filepath.Join(n.bin, program), filepath.Join(root, "usr/bin", program)); err != nil {
			return err
		}
	}
	archives := filepath.Join(work, "images")
	if err := os.Mkdir(archives, 0o755); err != nil {
		return err
	}
	for _, c := range n.images {
		path := filepath.Join(n.bin, c.program)
		if c.program == "pause" {
			path = filepath.Join(work, "pause")
			if err := buildPause(ctx, path); err != nil {
				return err
			}
		}
		if err := WriteArchive(filepath.Join(archives, c.program+".tar"), c.ref, path); err != nil {
			return fmt.Errorf("container image %s: %w", c.ref, err)
		}
	}
	return errors.Join(importImages(ctx, root, archives), os.RemoveAll(archives))
}

func buildPause(ctx context.Context, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, pausePackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	return runTail(cmd)
}

// importImages has the root's own containerd take the archives. The mounts and
// processes are gone with the last command.
func importImages(ctx context.Context, root, archives string) error {
	const enter = `mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/run" && mkdir "$1/run/images" &&
		mount --bind "$2" "$1/run/images" && exec chroot "$1" /bin/sh`
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", enter, "sh", root, archives)
	cmd.Stdin = strings.NewReader(nodeImages)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	return runTail(cmd)
}
