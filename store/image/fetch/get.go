package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// version tells a file on a server from its other versions; it is the mark of what
// was fetched.
type version struct {
	URL string `json:"url"`
	// ETag is a strong validator, else it is empty (RFC 9110 section 13.1.5).
	ETag string `json:"etag,omitempty"`
	// Modified is empty where it is a weak validator, and no checksum would tell.
	Modified string `json:"modified,omitempty"`
	Total    int64  `json:"total"` // -1 is unknown
}

// validator is for If-Range; empty where the server gave none that can be used.
func (v version) validator() string {
	if v.ETag != "" {
		return v.ETag
	}
	return v.Modified
}

// Get makes one try: it goes on where f ends, if the server still has the same file,
// and begins anew otherwise. It returns nil when f is complete, else an *Error, the
// error of f, or the ctx's. progress is called with the bytes there are, and all
// there will be, 0 where that is unknown.
func (c *Client) Get(ctx context.Context, src Source, f File, progress func(done, total int64)) error {
	h, done, err := c.httpClient(src)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var old version
	header := http.Header{}
	resume := f.Size() > 0 && json.Unmarshal([]byte(f.Mark()), &old) == nil && old.URL == src.URL && old.validator() != ""
	if resume {
		if f.Size() == old.Total {
			return nil // a restart came between
		}
		header.Set("Range", fmt.Sprintf("bytes=%d-", f.Size()))
		header.Set("If-Range", old.validator())
	}
	resp, err := c.do(ctx, h, src, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	total, err := begin(resp, src, f, old, resume)
	if err != nil {
		return err
	}
	return c.body(ctx, cancel, resp, f, total, progress)
}

// begin judges the answer's head and makes f ready for its body. It says how large
// the file will be, -1 for unknown.
func begin(resp *http.Response, src Source, f File, old version, resume bool) (int64, error) {
	switch {
	case resp.StatusCode == http.StatusPartialContent && resume:
		from, total, err := contentRange(resp.Header.Get("Content-Range"))
		if err != nil || from != f.Size() || (old.Total >= 0 && total != old.Total) || (resp.ContentLength >= 0 && total >= 0 && from+resp.ContentLength > total) {
			return 0, changed(f, "the server answers a request for the rest with another part (%.60q)", resp.Header.Get("Content-Range"))
		}
		if now := versionOf(resp, src, total); now.ETag != old.ETag || (now.ETag == "" && now.Modified != old.Modified) {
			return 0, changed(f, "the file on the server changed while it was fetched")
		}
		if total >= 0 {
			return total, f.Room(total - f.Size())
		}
		return total, nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && resume:
		return 0, changed(f, "the file on the server became shorter")
	case resp.StatusCode != http.StatusOK:
		return 0, status(resp)
	}
	if resp.ContentLength == 0 {
		return 0, final("the file is empty")
	}
	// Some servers call every .gz file packed, though they send it as it is.
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" && !(strings.HasSuffix(e, "gzip") && strings.HasSuffix(resp.Request.URL.Path, ".gz")) {
		return 0, final("the server packs the file as it sends it (Content-Encoding: %.20q) although it was asked not to, so that its bytes and checksum are not the file's (have the server leave it as it is)", e)
	}
	// Only HTTP/1 knows a body that ends with the connection, cut short or not.
	if resp.ContentLength < 0 && resp.ProtoMajor == 1 && len(resp.TransferEncoding) == 0 && !src.Checked {
		return 0, final("the server does not say how long the file is, so that nobody would see whether all of it came (give a checksum)")
	}
	if resp.ContentLength > 0 {
		if err := f.Room(resp.ContentLength - f.Size()); err != nil {
			return 0, err
		}
	}
	now := versionOf(resp, src, resp.ContentLength)
	mark, err := json.Marshal(now)
	if err != nil {
		return 0, err
	}
	was := f.Size()
	if err := f.Begin(string(mark)); err != nil {
		return 0, err
	}
	if resume && was > 0 && now.validator() != old.validator() {
		resp.Body.Close()
		return 0, &Error{Text: "the file on the server changed while it was fetched", Changed: true}
	}
	return resp.ContentLength, nil
}

// changed drops what is there.
func changed(f File, format string, args ...any) error {
	if err := f.Begin(""); err != nil {
		return err
	}
	return &Error{Text: fmt.Sprintf(format, args...), Changed: true}
}

func versionOf(resp *http.Response, src Source, total int64) version {
	v := version{URL: src.URL, Total: total}
	if e := resp.Header.Get("ETag"); len(e) <= 1024 && strings.HasPrefix(e, `"`) {
		v.ETag = e
	}
	if m := resp.Header.Get("Last-Modified"); len(m) <= 64 && (src.Checked || settled(m, resp.Header.Get("Date"))) {
		v.Modified = m
	}
	return v
}

// settled reports whether a file that was changed then cannot have been changed twice
// in the second that the header counts (RFC 9110 section 8.8.2.2).
func settled(modified, date string) bool {
	m, err := http.ParseTime(modified)
	d, err2 := http.ParseTime(date)
	return err == nil && err2 == nil && d.Sub(m) >= time.Minute
}

// contentRange reads `bytes 5-9/10` (RFC 9110 section 14.4); total -1 is unknown.
func contentRange(s string) (from, total int64, err error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	first, last, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, errors.New("not a range")
	}
	from, err = strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total = -1
	var err3 error
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	if err := errors.Join(err, err2, err3); err != nil {
		return 0, 0, err
	}
	if from < 0 || end < from || (total >= 0 && end >= total) {
		return 0, 0, errors.New("not a range")
	}
	return from, total, nil
}

// body appends the answer's body to f.
func (c *Client) body(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response, f File, total int64, progress func(done, total int64)) error {
	stalled := passing("less than %d KiB came within %s", stallBytes>>10, c.o.Stall)
	var came atomic.Int64
	stop := watch(c.o.Stall, &came, func() { cancel(stalled) })
	defer stop()
	buf := make([]byte, 256<<10)
	for {
		n, err := resp.Body.Read(buf)
		came.Add(int64(n))
		if total >= 0 && f.Size()+int64(n) > total {
			return changed(f, "the server sends more than the %d bytes it announced", total)
		}
		if n > 0 {
			if _, err := f.Write(buf[:n]); err != nil {
				return err
			}
			progress(f.Size(), max(total, 0))
		}
		switch {
		case err == io.EOF:
			if total >= 0 && f.Size() != total {
				return passing("the transfer ended after %d of %d bytes", f.Size(), total)
			}
			return nil
		case err != nil && context.Cause(ctx) == stalled:
			return stalled
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return passing("the connection broke after %d bytes", f.Size())
		case err != nil:
			return explain(err)
		}
	}
}

// watch calls expired when less than stallBytes came within an interval. stop ends
// it, and waits until it has.
func watch(every time.Duration, came *atomic.Int64, expired func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(every)
		defer t.Stop()
		for last := int64(0); ; {
			select {
			case <-quit:
				return
			case <-t.C:
			}
			now := came.Load()
			if now-last < stallBytes {
				expired()
				return
			}
			last = now
		}
	}()
	return func() { close(quit); <-done }
}
