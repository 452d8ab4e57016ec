package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/workflow"
)

func (a *app) imageCommand() *cobra.Command {
	r := records[api.Image]{a, api.KindImage, func(c *client.Client) *client.Records[api.Image] { return c.Images }, imageColumns}
	cmd := a.group("image", "The catalogue of operating system images", "", "  rackstrap image list\n  rackstrap image add debian-12 ./debian-12.raw.zst")
	cmd.Aliases = []string{"images"}
	cmd.AddCommand(a.imageListCommand(), r.get(), r.patch(), r.edit(), r.remove(), a.imageAddCommand(), a.imageFetchCommand(), a.imageWaitCommand())
	return cmd
}

func imageColumns() []column[api.Image] {
	return []column[api.Image]{
		{head: "NAME", value: func(i api.Image) string { return i.Meta.Name }},
		{head: "STATE", value: imageState},
		{head: "SIZE", value: func(i api.Image) string {
			if len(i.Status.Renditions) == 0 {
				return ""
			}
			return size(i.Status.Renditions[0].Bytes)
		}},
		{head: "DISK", value: func(i api.Image) string {
			if i.Status.DiskBytes == 0 {
				return ""
			}
			return size(i.Status.DiskBytes)
		}},
		{head: "FROM", value: func(i api.Image) string {
			if i.Spec.URL == "" {
				return "upload"
			}
			return i.Spec.URL
		}},
		{head: "ARCH", wide: true, value: func(i api.Image) string { return i.Spec.Architecture() }},
		{head: "OS", wide: true, value: func(i api.Image) string { return strings.TrimSpace(i.Spec.OS + " " + i.Spec.OSVersion) }},
		{head: "KUBERNETES", wide: true, value: func(i api.Image) string { return i.Spec.KubernetesVersion }},
		{head: "SOURCE", wide: true, value: func(i api.Image) string {
			if i.Status.Source.Digest == "" {
				return ""
			}
			return "sha256:" + i.Status.Source.Digest
		}},
		{head: "DESCRIPTION", wide: true, value: func(i api.Image) string { return i.Spec.Description }},
	}
}

func imageState(i api.Image) string {
	switch p := i.Progress; {
	case i.Spec.Direct:
		return "direct"
	case p != nil && p.Total > 0:
		return fmt.Sprintf("%s %d %%", p.State, min(100, p.Done*100/p.Total))
	case p != nil && !i.Status.State.Ended():
		return string(p.State)
	}
	return string(i.Status.State)
}

func (a *app) imageListCommand() *cobra.Command {
	var q workflow.ImageQuery
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List every image, or those that fit", Args: takes(),
		Example: "  rackstrap image list -o wide\n  rackstrap image list --os debian --os-version 12 --arch arm64",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			rows, err := c.FindImages(cmd.Context(), q)
			if err != nil {
				return err
			}
			return printRecords(a, api.KindImage, imageColumns(), rows, true)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.OS, "os", "", "only of that operating system")
	f.StringVar(&q.OSVersion, "os-version", "", "only of that version of it")
	f.StringVar(&q.KubernetesVersion, "kubernetes-version", "", "only with that Kubernetes in it")
	f.StringVar(&q.Arch, "arch", "", "only for amd64, or arm64")
	return cmd
}

func (a *app) imageFetchCommand() *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "fetch NAME", Short: "Fetch an image again from its URL", Args: takes("NAME"),
		Long:    "Fetch an image again: its URL has another file now, or what was wrong is mended.\nUntil the new one is complete, machines are installed with the one that is there.",
		Example: "  rackstrap image fetch debian-12",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			if _, err := c.FetchImage(cmd.Context(), args[0]); err != nil {
				return err
			}
			if noWait {
				_, err := fmt.Fprintf(a.Out, "image/%s is fetched\n", args[0])
				return err
			}
			return a.waitImage(cmd.Context(), c, args[0], 0)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is there")
	return cmd
}

func (a *app) imageWaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait NAME", Short: "Wait until an image can be installed", Args: takes("NAME"),
		Example: "  rackstrap image wait debian-12 --timeout 10m",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			return a.waitImage(cmd.Context(), c, args[0], timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up waiting after that long; 0 never does")
	return cmd
}

// waitImage shows how far the daemon is with an image, until it can be installed.
func (a *app) waitImage(ctx context.Context, c *client.Client, name string, timeout time.Duration) error {
	outer := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	show := &imageView{a: a}
	i, err := c.WaitImage(ctx, name, show.see)
	show.end()
	if errors.Is(err, context.DeadlineExceeded) && outer.Err() == nil {
		return &failure{exitTimeout, "rackstrap image wait " + name, fmt.Errorf("image %q is not ready after %s; it goes on", name, span(timeout))}
	}
	if err != nil {
		return imageFailure(err)
	}
	return a.printImage(i)
}

func (a *app) printImage(i *api.Image) error {
	if i.Spec.Direct {
		_, err := fmt.Fprintf(a.Out, "image/%s is fetched by the machines themselves\n", i.Meta.Name)
		return err
	}
	text := fmt.Sprintf("image/%s ready: sha256:%s, %s", i.Meta.Name, i.Status.Source.Digest, size(i.Status.Source.Bytes))
	if r := i.Status.Renditions; len(r) > 0 && r[0].Digest != i.Status.Source.Digest {
		text += fmt.Sprintf(" of %s, packed to %s", i.Status.Source.Format, size(r[0].Bytes))
	}
	_, err := fmt.Fprintf(a.Out, "%s, disk %s\n", text, size(i.Status.DiskBytes))
	return err
}

func imageFailure(err error) error {
	var f *client.ImageFailed
	if errors.As(err, &f) {
		return &failure{exitFailed, "rackstrap image get " + f.Name + "; when it is mended: rackstrap image fetch " + f.Name + ", or add it again", err}
	}
	return err
}

// imageView is a bar for each thing that is done with an image.
type imageView struct {
	a       *app
	m       *meter
	state   workflow.ImageState
	message string
}

func (v *imageView) see(i *api.Image) {
	p := i.Progress
	if p == nil {
		return
	}
	if v.m == nil || p.State != v.state {
		v.end()
		v.m, v.state = newMeter(v.a.Err, string(p.State)+" "+i.Meta.Name), p.State
	}
	if p.Message != "" && p.Message != v.message {
		v.end()
		_, _ = fmt.Fprintln(v.a.Err, p.Message)
		v.m = newMeter(v.a.Err, string(p.State)+" "+i.Meta.Name)
	}
	v.message = p.Message
	if p.Done > 0 {
		v.m.set(p.Done, p.Total)
	}
}

func (v *imageView) end() {
	if v.m != nil {
		v.m.end()
	}
}

// sendFile streams a file, or standard input for -, and shows how far it is.
func (a *app) sendFile(ctx context.Context, c *client.Client, name, path string, spec workflow.ImageSpec) error {
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
	_, err := c.UploadImage(ctx, name, io.NopCloser(in), client.Upload{
		Checksum: spec.Checksum, Size: total, Format: spec.Format, Arch: spec.Arch, Description: spec.Description,
		OS: spec.OS, OSVersion: spec.OSVersion, KubernetesVersion: spec.KubernetesVersion,
		Progress: func(sent int64) { m.set(sent, total) }, NoWait: true,
	})
	m.end()
	return err
}
