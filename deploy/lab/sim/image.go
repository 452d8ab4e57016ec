package sim

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/store/image/codec"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/workflow"
)

// wholeImage is up to where an image is fetched and decoded as the worker does it, in
// bytes. Of a larger one the beginning is fetched, and no checksum is verified.
const wholeImage = 16 << 20

// writeImage fetches the image from the machine's address, decodes it, verifies its
// checksum, and keeps none of it.
func (m *Machine) writeImage(ctx context.Context, env action.Env, from netip.Addr, o *workflow.ImageWrite) (action.Result, error) {
	d, err := choose(m.disks, o.Disk)
	if err != nil {
		return action.Result{}, err
	}
	sum, err := codec.ParseChecksum(o.Checksum)
	if err != nil {
		return action.Result{}, err
	}
	format, err := codec.ParseFormat(o.Format)
	if err != nil {
		return action.Result{}, err
	}
	url := o.Image
	if strings.HasPrefix(url, "/") {
		url = env.HTTPBase + url
	}
	body, size, err := m.download(ctx, from, url, o)
	if err != nil {
		return action.Result{}, fmt.Errorf("image %s: %w", url, err)
	}
	defer body.Close()
	env.Log.Info("the server answered", "url", url, "bytes", size, "disk", d.Path, "expected", o.Checksum)
	// The old system is gone from here on, whether the new one comes or not.
	m.wrote(env, workflow.KindImageWrite, d)
	m.becomes(d, nil)
	m.takeTime(ctx, env, size)
	if ctx.Err() != nil {
		return action.Result{}, context.Cause(ctx)
	}
	out := action.Result{Disk: d.Path, SourceBytes: size, WrittenBytes: size}
	if size <= wholeImage {
		r, err := codec.NewReader(body, codec.Options{Format: format, Size: size, Checksum: sum})
		if err != nil {
			return action.Result{}, fmt.Errorf("image %s: %w", url, err)
		}
		n, err := io.Copy(io.Discard, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return action.Result{}, fmt.Errorf("image %s: %w (the disk %s has no partition table now and cannot boot)", url, err, d.Path)
		}
		out.SourceBytes, out.WrittenBytes, out.Checksum = r.SourceBytes(), n, sum.String()
	}
	if out.WrittenBytes > d.Bytes {
		return action.Result{}, fmt.Errorf("image %s: has %d bytes, the disk %s %d", url, out.WrittenBytes, d.Path, d.Bytes)
	}
	m.becomes(d, &System{Disk: d.Path, Image: url, Checksum: out.Checksum, Workflow: env.Workflow, Written: time.Now()})
	out.Message = fmt.Sprintf("wrote %d bytes to %s, flushed and read samples back", out.WrittenBytes, d.Path)
	return out, nil
}

// download begins to fetch; size is -1 where the server does not say it.
func (m *Machine) download(ctx context.Context, from netip.Addr, url string, o *workflow.ImageWrite) (io.ReadCloser, int64, error) {
	t := m.rack.wire.transport(from)
	if o.CA != "" {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(o.CA))
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	} else if o.Insecure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // as the worker: a checksum is required then
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return nil, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, 0, fmt.Errorf("the server says %s", resp.Status)
	}
	return resp.Body, resp.ContentLength, nil
}
