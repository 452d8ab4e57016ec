package action

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// patience says how long a download tries to go on.
type patience struct {
	tries    int           // in a row without a byte
	first    time.Duration // before the second try; doubles
	longest  time.Duration
	stall    time.Duration // without a byte, before a connection is given up
	restarts int           // in all
}

func usualPatience() patience {
	return patience{tries: 8, first: time.Second, longest: 30 * time.Second, stall: 30 * time.Second, restarts: 200}
}

// fetcher is the download of one image. Read goes on where the connection
// broke, as long as the server shows that it is still the same file.
type fetcher struct {
	ctx      context.Context // a Reader has no other way to get it
	stop     context.CancelFunc
	log      *slog.Logger
	client   *http.Client
	url      *url.URL
	patience patience
	// verified: there is a checksum, so a mixture of two files would be noticed.
	verified bool

	size      int64 // -1 when the server does not say
	validator string
	offset    int64
	restarts  int
	body      io.ReadCloser
	cancel    context.CancelFunc
	stall     *time.Timer
}

// fetch starts a download: it returns when the server has answered with the
// beginning of the file. Permanent errors are those of the URL.
func fetch(ctx context.Context, log *slog.Logger, c *http.Client, u *url.URL, verified bool, p patience) (*fetcher, error) {
	f := &fetcher{log: log, client: c, url: u, patience: p, verified: verified, size: -1}
	f.ctx, f.stop = context.WithCancel(ctx)
	log.Info("asking for the image", "url", f.shown())
	if err := f.connect(nil); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

// Read implements [io.Reader].
func (f *fetcher) Read(p []byte) (int, error) {
	for {
		f.stall.Reset(f.patience.stall)
		n, err := f.body.Read(p)
		f.offset += int64(n)
		f.stall.Stop()
		switch {
		case n > 0 && err == nil, n > 0 && err != io.EOF:
			return n, nil // a broken connection is met again by the next Read
		case err == nil:
			continue
		case err == io.EOF && (f.size < 0 || f.offset >= f.size):
			return n, io.EOF
		case n > 0:
			return n, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err := f.connect(err); err != nil {
			return 0, err
		}
	}
}

// Close implements [io.Closer]. It may be called while Read waits.
func (f *fetcher) Close() error {
	f.stop()
	return nil
}

// connect gets a body that goes on at offset. why is what ended the one before.
func (f *fetcher) connect(why error) error {
	delay := f.patience.first
	for try := 1; ; try++ {
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		if f.body != nil {
			f.cancel()
			f.body.Close()
			f.restarts++
			if f.restarts > f.patience.restarts {
				return fmt.Errorf("download %s: gave up after %d interruptions: %w", f.shown(), f.restarts, why)
			}
		}
		if why != nil {
			f.log.Warn("download interrupted, going on", "url", f.shown(), "offset", f.offset, "try", try, "error", why)
		}
		if why = f.request(); why == nil {
			return nil
		}
		if IsPermanent(why) || errors.Is(why, errOther) || try >= f.patience.tries {
			return fmt.Errorf("download %s: %w", f.shown(), why)
		}
		select {
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		case <-time.After(delay):
		}
		delay = min(2*delay, f.patience.longest)
	}
}

// request does one GET and judges the answer.
func (f *fetcher) request() error {
	ctx, cancel := context.WithCancelCause(f.ctx)
	f.cancel = func() { cancel(context.Canceled) }
	f.stall = time.AfterFunc(f.patience.stall, func() {
		cancel(fmt.Errorf("no data for %s", f.patience.stall))
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url.String(), nil)
	if err != nil {
		return permanent(err)
	}
	// The bytes of the file, not an encoding of them.
	req.Header.Set("Accept-Encoding", "identity")
	if f.offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", f.offset))
		if f.validator != "" {
			req.Header.Set("If-Range", f.validator)
		}
	}
	resp, err := f.client.Do(req)
	f.stall.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		f.cancel()
		if cause != nil {
			return cause
		}
		return stripURL(err)
	}
	if err := f.accept(resp); err != nil {
		f.cancel()
		resp.Body.Close()
		return err
	}
	f.body = &causeReader{resp.Body, ctx}
	return nil
}

// accept checks that resp is the file from offset on (RFC 9110, sections 13.1.5
// and 14.2 to 14.4).
func (f *fetcher) accept(resp *http.Response) error {
	validator := strongValidator(resp.Header)
	switch {
	case resp.StatusCode == http.StatusOK && f.offset == 0:
		if f.size >= 0 && resp.ContentLength != f.size {
			return errOther
		}
		f.size, f.validator = resp.ContentLength, validator
		f.log.Info("the server answered", "url", f.shown(), "status", resp.Status, "bytes", resp.ContentLength, "version", validator)
		return nil
	case resp.StatusCode == http.StatusOK:
		// The whole file again: the server knows no ranges, or the file changed.
		if err := f.same(resp.ContentLength, validator); err != nil {
			return err
		}
		f.stall.Reset(f.patience.stall + time.Duration(f.offset/(1<<20))*time.Second)
		defer f.stall.Stop()
		if _, err := io.CopyN(io.Discard, resp.Body, f.offset); err != nil {
			return err
		}
		return nil
	case resp.StatusCode == http.StatusPartialContent && f.offset > 0:
		start, size, err := contentRange(resp.Header.Get("Content-Range"))
		if err != nil {
			return err
		}
		if start != f.offset {
			return permanentf("the server answered with bytes from %d when asked from %d", start, f.offset)
		}
		if err := f.same(size, validator); err != nil {
			return err
		}
		f.log.Info("the download goes on", "url", f.shown(), "status", resp.Status, "offset", f.offset, "bytes", size)
		return nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return errOther
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusRequestTimeout:
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return permanentf("the server answered %s (check the URL, and that the image is still there)", resp.Status)
}

// errOther ends a download, for the action to begin anew.
var errOther = errors.New("the image on the server changed during the download, or may have")

// same refuses to go on with another file than the download began with.
func (f *fetcher) same(size int64, validator string) error {
	if f.size >= 0 && size != f.size || validator != f.validator {
		return errOther
	}
	if validator == "" && !f.verified {
		return fmt.Errorf("%w: the server names no version of it, and there is no checksum (set checksum:)", errOther)
	}
	f.size = size
	return nil
}

// strongValidator is what If-Range may carry: a strong entity tag, else a date.
func strongValidator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" {
		if strings.HasPrefix(tag, "W/") {
			return ""
		}
		return tag
	}
	return h.Get("Last-Modified")
}

// contentRange reads "bytes 5-9/10". size is -1 for "*".
func contentRange(s string) (start, size int64, err error) {
	spec, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(spec, "/")
	first, _, ok3 := strings.Cut(span, "-")
	start, err = strconv.ParseInt(first, 10, 64)
	if !ok || !ok2 || !ok3 || err != nil {
		return 0, 0, fmt.Errorf("the server sent a bad Content-Range %q", s)
	}
	if total == "*" {
		return start, -1, nil
	}
	if size, err = strconv.ParseInt(total, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("the server sent a bad Content-Range %q", s)
	}
	return start, size, nil
}

// shown is the URL without what may be secret in it.
func (f *fetcher) shown() string { return shownURL(f.url) }

func shownURL(u *url.URL) string {
	shown := *u
	shown.User = nil // a name may be a token
	if shown.RawQuery != "" {
		shown.RawQuery = "…"
	}
	return shown.String()
}

// stripURL removes the URL that net/http puts into its errors: it may carry a
// password or a signature.
func stripURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) || errors.Is(err, errRedirects) {
		return permanent(err)
	}
	return err
}

// causeReader reports why a request was cancelled instead of that it was.
type causeReader struct {
	io.ReadCloser
	ctx context.Context
}

func (c *causeReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil && err != io.EOF && c.ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	return n, err
}

var errRedirects = errors.New("more than 5 redirects (use the final URL)")

// imageURL makes the URL of an image from the options.
func imageURL(base string, o workflow.ImageWrite) (*url.URL, error) {
	u, err := url.Parse(o.Image)
	if err != nil {
		return nil, permanentf("image: not a URL (check it)")
	}
	if u.Scheme == "" && strings.HasPrefix(u.Path, "/") {
		b, err := url.Parse(base)
		if err != nil || b.Host == "" {
			return nil, permanentf("image %q is a path on the appliance, whose address is not known: %q", o.Image, base)
		}
		u = b.ResolveReference(u)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, permanentf("image %q is no http or https URL", shownURL(u))
	case u.Scheme == "https" && o.CA == "" && !o.Insecure:
		return nil, permanentf("image %s: the worker carries no certificates to check https with (set ca: to the PEM of the server's CA, or insecure: true with a checksum)", shownURL(u))
	case o.Insecure && (o.Checksum == "" || workflow.WeakChecksum(o.Checksum)):
		return nil, permanentf("image %s: insecure: true needs a checksum (sha256:<hex>)", shownURL(u))
	}
	return u, nil
}

// httpClient makes a client that never decodes and never goes through a proxy.
func httpClient(o workflow.ImageWrite) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
		DisableCompression:    true,
		DisableKeepAlives:     true,
		ReadBufferSize:        256 << 10,
	}
	if o.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, permanentf("ca: holds no PEM certificate")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	} else if o.Insecure {
		// The checksum, which is required then, says whether it is the image.
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec
	}
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errRedirects
		}
		if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return permanentf("redirected from https to %s", req.URL.Scheme)
		}
		return nil
	}}, nil
}
