package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rackstrap/rackstrap/api"
)

// LogOptions say which part of a log is wanted, in bytes; the zero value is all that
// there is now.
type LogOptions struct {
	// Offset is where it begins; Limit how much it is, 0 for the rest.
	Offset, Limit int64
	// Tail is the end of the log, so much at most; it goes with neither of the others.
	Tail int64
	// Follow goes on with what comes until the attempt ends; not with Limit.
	Follow bool
}

// Log is a part of the log of an attempt, as text that is safe to show. Close it.
type Log struct {
	io.ReadCloser
	// Offset is the byte of the log at which it begins, Size how many the log had then.
	Offset, Size int64
}

// AttemptLog reads what an attempt of a workflow wrote. The action counts from 0, as in
// its status, the attempt from 1, as in its events. A followed log ends with io.EOF when
// the attempt has ended; with anything else it was cut off, and Offset and what was read
// say where to go on. api.CodeNotFound where nothing was written, or the workflow is gone.
func (c *Client) AttemptLog(ctx context.Context, workflow string, action, attempt int, o LogOptions) (*Log, error) {
	rq := request{method: http.MethodGet, path: fmt.Sprintf("%s/actions/%d/attempts/%d/log", c.Workflows.path(workflow), action, attempt), query: url.Values{}}
	for name, n := range map[string]int64{"offset": o.Offset, "limit": o.Limit, "tail": o.Tail} {
		if n != 0 {
			rq.query.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if o.Follow {
		rq.query.Set("follow", "true")
	}
	resp, err := c.send(ctx, rq)
	if err != nil {
		return nil, err
	}
	l := &Log{ReadCloser: resp.Body}
	for name, n := range map[string]*int64{api.LogOffset: &l.Offset, api.LogSize: &l.Size} {
		if *n, err = strconv.ParseInt(resp.Header.Get(name), 10, 64); err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("the answer has no %s (compare: rackstrap version)", name)
		}
	}
	return l, nil
}
