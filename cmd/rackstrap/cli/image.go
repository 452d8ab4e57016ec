package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func (a *app) imageCommand() *cobra.Command {
	r := records[workflow.Image]{a, api.KindImage, func(c *client.Client) *client.Records[workflow.Image] { return c.Images }, imageColumns}
	return r.command("The catalogue of operating system images", "", "  rackstrap image list\n  rackstrap image add debian-12 ./debian-12.raw.zst", a.imageAddCommand())
}

func imageColumns() []column[workflow.Image] {
	return []column[workflow.Image]{
		{head: "NAME", value: func(i workflow.Image) string { return i.Meta.Name }},
		{head: "SIZE", value: func(i workflow.Image) string {
			if i.Spec.Blob == "" {
				return ""
			}
			return size(i.Spec.Bytes)
		}},
		{head: "FROM", value: func(i workflow.Image) string {
			if i.Spec.Blob != "" {
				return "kept here"
			}
			return i.Spec.URL
		}},
		{head: "ARCH", wide: true, value: func(i workflow.Image) string {
			if i.Spec.Arch == "" {
				return "amd64"
			}
			return i.Spec.Arch
		}},
		{head: "CHECKSUM", wide: true, value: func(i workflow.Image) string { _, sum := i.Source(); return sum }},
		{head: "DESCRIPTION", wide: true, value: func(i workflow.Image) string { return i.Spec.Description }},
	}
}

func (a *app) imageAddCommand() *cobra.Command {
	var spec workflow.ImageSpec
	var sha256 string
	cmd := &cobra.Command{
		Use: "add NAME FILE|URL", Short: "Keep a file as an image, or note where workers fetch one", Args: takes("NAME", "FILE|URL"),
		Long: `Upload a file, which the appliance then keeps and serves, or note an http(s) URL from
which the workers fetch the image themselves. An image of that name is replaced.

A file may be raw, or packed with gzip, xz, zstd or bzip2; - is standard input. The
checksum is of the bytes as they are, packed or not.`,
		Example: `  rackstrap image add debian-12 ./debian-12.raw.zst
  rackstrap image add debian-12 ./debian-12.raw.zst --sha256 9f86d081884c7d65…
  rackstrap image add debian-12 https://images.example.net/debian-12.raw.xz`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sha256 != "" && spec.Checksum != "" {
				return usage(cmd, "--sha256 and --checksum exclude each other")
			}
			if sha256 != "" {
				spec.Checksum = "sha256:" + strings.ToLower(sha256)
			}
			c := a.client()
			defer c.Close()
			if strings.Contains(args[1], "://") {
				spec.URL = args[1]
				return a.addURL(cmd.Context(), c, args[0], spec)
			}
			return a.addFile(cmd.Context(), c, args[0], args[1], spec)
		},
	}
	f := cmd.Flags()
	f.StringVar(&sha256, "sha256", "", "what the sha256 of the file must be, in hex")
	f.StringVar(&spec.Checksum, "checksum", "", "the same as sha256:HEX or sha512:HEX")
	f.StringVar(&spec.Format, "format", "", "raw, gz, xz, zst or bz2; found by content where it is not given")
	f.StringVar(&spec.Arch, "arch", "", "amd64 (default) or arm64")
	f.StringVar(&spec.Description, "description", "", "for people")
	return cmd
}

func (a *app) addURL(ctx context.Context, c *client.Client, name string, spec workflow.ImageSpec) error {
	img := &workflow.Image{Meta: hardware.Meta{Name: name}, Spec: spec}
	done := "created"
	_, err := c.Images.Create(ctx, img)
	var p *api.Problem
	if errors.As(err, &p) && p.Code == api.CodeExists {
		done = "changed"
		_, err = c.Images.Replace(ctx, name, img)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "image/%s %s\n", name, done)
	return err
}

func (a *app) addFile(ctx context.Context, c *client.Client, name, path string, spec workflow.ImageSpec) error {
	in, total := a.In, int64(0)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", path)
		}
		if st.Size() == 0 {
			return fmt.Errorf("%s is empty", path)
		}
		in, total = f, st.Size()
	}
	m := newMeter(a.Err, "sending "+path)
	img, err := c.UploadImage(ctx, name, io.NopCloser(in), client.Upload{
		Checksum: spec.Checksum, Size: total, Format: spec.Format, Arch: spec.Arch, Description: spec.Description,
		Progress: func(sent int64) { m.set(sent, total) },
	})
	m.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "image/%s kept: %s, sha256:%s\n", name, size(img.Spec.Bytes), img.Spec.Blob)
	return err
}
