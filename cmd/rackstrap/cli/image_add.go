package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func (a *app) imageAddCommand() *cobra.Command {
	var spec workflow.ImageSpec
	var sha256, ca string
	var noWait bool
	cmd := &cobra.Command{
		Use: "add NAME FILE|URL", Short: "Keep a file, or what an http(s) URL has, as an image", Args: takes("NAME", "FILE|URL"),
		Long: `Upload a file, or have the appliance fetch an http(s) URL once. It keeps the image and
serves it to the machines. An image of that name is replaced. It waits until the image
was read to its end and can be installed, and shows how far that is.

The image is a raw disk or a qcow2, plain or packed with gzip, xz, zstd or bzip2; - is
standard input. The checksum is of the bytes as they travel; it may be the URL of a
list such as SHA256SUMS. With --direct the machines fetch the URL by themselves.`,
		Example: `  rackstrap image add debian-12 ./debian-12.raw.zst
  rackstrap image add debian-12 ./debian-12.qcow2 --sha256 9f86d081884c7d65… --os debian --os-version 12
  rackstrap image add debian-12 https://images.example.net/debian-12.qcow2 --checksum https://images.example.net/SHA512SUMS
  rackstrap image add internal https://images.corp.example/x.raw.xz --ca /etc/ssl/corp-ca.pem`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sha256 != "" && spec.Checksum != "" {
				return usage(cmd, "--sha256 and --checksum exclude each other")
			}
			if sha256 != "" {
				spec.Checksum = "sha256:" + strings.ToLower(sha256)
			}
			isURL := strings.Contains(args[1], "://")
			if !isURL && (ca != "" || spec.Direct) {
				return usage(cmd, "--ca and --direct are for URLs")
			}
			if ca != "" {
				b, err := os.ReadFile(ca)
				if err != nil {
					return err
				}
				spec.CA = string(b)
			}
			c := a.client()
			defer c.Close()
			add := a.sendFile
			if isURL {
				add = a.addURL
			}
			if err := add(cmd.Context(), c, args[0], args[1], spec); err != nil {
				return err
			}
			if noWait {
				_, err := fmt.Fprintf(a.Out, "image/%s added; wait for it: rackstrap image wait %s\n", args[0], args[0])
				return err
			}
			return a.waitImage(cmd.Context(), c, args[0], 0)
		},
	}
	f := cmd.Flags()
	f.StringVar(&sha256, "sha256", "", "what the sha256 of the file must be, in hex")
	f.StringVar(&spec.Checksum, "checksum", "", "the same as sha256:HEX, sha512:HEX, md5:HEX (weak), or the URL of a list of checksums")
	f.StringVar(&spec.Format, "format", "", "raw, qcow2, gz, xz, zst or bz2; found by content where it is not given")
	f.StringVar(&spec.Arch, "arch", "", "amd64 (default) or arm64")
	f.StringVar(&spec.OS, "os", "", "the operating system, to find it by")
	f.StringVar(&spec.OSVersion, "os-version", "", "its version")
	f.StringVar(&spec.KubernetesVersion, "kubernetes-version", "", "the version of the Kubernetes in it")
	f.StringVar(&spec.Description, "description", "", "for people")
	f.StringVar(&ca, "ca", "", "PEM file of a CA to trust for this URL")
	f.BoolVar(&spec.Direct, "direct", false, "keep nothing: the machines fetch the URL by themselves")
	f.BoolVar(&noWait, "no-wait", false, "do not wait until it can be installed")
	return cmd
}

// addURL writes the record. Where that names the same source as before, it is fetched
// again: the server may have another file now, or what failed before is mended.
func (a *app) addURL(ctx context.Context, c *client.Client, name, url string, spec workflow.ImageSpec) error {
	spec.URL = url
	img := &api.Image{Image: workflow.Image{Meta: hardware.Meta{Name: name}, Spec: spec}}
	_, err := c.Images.Create(ctx, img)
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeExists {
		return err
	}
	old, err := c.Images.Get(ctx, name)
	if err != nil {
		return err
	}
	img.Meta.Labels = old.Meta.Labels
	now, err := c.Images.Replace(ctx, name, img)
	if err == nil && !now.Spec.Direct && now.Spec.Key() == old.Spec.Key() {
		_, err = c.FetchImage(ctx, name)
	}
	return err
}
