package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

// Upload says what is known of a file that is sent.
type Upload struct {
	// Checksum the bytes must have: sha256:<hex> or sha512:<hex>; empty takes any.
	Checksum string
	// Size in bytes; 0 is unknown.
	Size                             int64
	Format, Arch, Description        string
	OS, OSVersion, KubernetesVersion string
	// Progress, if not nil, is called with the bytes sent so far.
	Progress func(sent int64)
	// NoWait returns when the file was taken, and not when it can be installed.
	NoWait bool
	// See is called while the daemon checks and packs the file; may be nil.
	See func(*api.Image)
}

// UploadImage streams the file of an image to the daemon, waits until it can be
// installed, and returns the record. Bytes that differ from the checksum, and what
// is no image, are refused: api.CodeInvalid.
func (c *Client) UploadImage(ctx context.Context, name string, file io.Reader, u Upload) (*api.Image, error) {
	q := url.Values{}
	for k, v := range map[string]string{
		"checksum": u.Checksum, "format": u.Format, "arch": u.Arch, "description": u.Description,
		"os": u.OS, "osVersion": u.OSVersion, "kubernetesVersion": u.KubernetesVersion,
	} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if u.Progress != nil {
		file = &counting{r: file, note: u.Progress}
	}
	out := new(api.Image)
	err := c.call(ctx, request{
		method: http.MethodPut, path: c.Images.path(name) + "/blob", query: q, body: file, length: u.Size,
		contentType: "application/octet-stream",
		// a name or checksum that is wrong is refused before the file travels
		header: http.Header{"Expect": {"100-continue"}},
	}, nil, out)
	if err != nil {
		return nil, err
	}
	if u.NoWait {
		return out, nil
	}
	return c.WaitImage(ctx, name, u.See)
}

type counting struct {
	r    io.Reader
	n    int64
	note func(int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.note(c.n)
	return n, err
}

// FetchImage asks the daemon to fetch an image again.
func (c *Client) FetchImage(ctx context.Context, name string) (*api.Image, error) {
	out := new(api.Image)
	if err := c.call(ctx, request{method: http.MethodPost, path: c.Images.path(name) + "/fetch"}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// FindImages lists the images that match.
func (c *Client) FindImages(ctx context.Context, find workflow.ImageQuery) ([]api.Image, error) {
	q := url.Values{}
	for k, v := range map[string]string{"os": find.OS, "osVersion": find.OSVersion, "kubernetesVersion": find.KubernetesVersion, "arch": find.Arch} {
		if v != "" {
			q.Set(k, v)
		}
	}
	var out api.List[api.Image]
	err := c.call(ctx, request{method: http.MethodGet, path: "/" + api.KindImage.Path(), query: q}, nil, &out)
	return out.Items, err
}

// ImageFailed is an image that cannot be used.
type ImageFailed struct{ Name, Message string }

func (e *ImageFailed) Error() string {
	return fmt.Sprintf("image %q cannot be used: %s", e.Name, e.Message)
}

// imageEvery is how often WaitImage asks.
const imageEvery = 300 * time.Millisecond

// WaitImage waits until an image can be installed: *ImageFailed. see, if not nil, is
// called with each answer. A direct image has nothing to wait for.
func (c *Client) WaitImage(ctx context.Context, name string, see func(*api.Image)) (*api.Image, error) {
	t := time.NewTicker(imageEvery)
	defer t.Stop()
	for {
		i, err := c.Images.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		if see != nil {
			see(i)
		}
		switch {
		case i.Spec.Direct, i.Status.State == workflow.ImageReady:
			return i, nil
		case i.Status.State == workflow.ImageFailed:
			return i, &ImageFailed{name, i.Status.Message}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
