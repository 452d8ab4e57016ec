package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// DefaultSocket is where the daemon listens.
const DefaultSocket = "/run/rackstrap/rackstrap.sock"

// Options say how to reach the daemon: by its socket, or by URL with a token.
type Options struct {
	// Socket is the daemon's unix socket; DefaultSocket where empty.
	Socket string
	// URL of the daemon's HTTPS listener, for example https://appliance.example:7443;
	// the socket is not used then.
	URL string
	// Token is the secret that is shown there.
	Token string
	// CAFile, a PEM file, is trusted instead of the system's CAs.
	CAFile string
	// CA is the same as PEM text, for those who have no file; CAFile is not read then.
	CA []byte
	// Fingerprint pins the server's certificate by its SHA-256, in hex; without a
	// CA, names and dates in it are not looked at then.
	Fingerprint string
}

// Client talks to one daemon. It may be used by several goroutines.
type Client struct {
	Hardware  *Records[hardware.Hardware]
	Subnets   *Records[hardware.Subnet]
	Templates *Records[workflow.Template]
	Rules     *Records[hardware.Rule]
	Images    *Records[api.Image]
	Workflows *Records[api.Workflow]
	Claims    *Records[hardware.Claim]

	where string
	base  string
	token string
	http  *http.Client
	// wrong is what is wrong with the Options; every call returns it.
	wrong error
}

// New makes a Client; nothing is connected yet. What is wrong with the Options is
// the error of every call.
func New(o Options) *Client {
	c := &Client{}
	if o.URL != "" {
		c.token = o.Token
	}
	var t *http.Transport
	c.where, c.base, t, c.wrong = o.transport()
	c.http = &http.Client{Transport: t, CheckRedirect: noRedirect}
	c.Hardware = &Records[hardware.Hardware]{c, api.KindHardware}
	c.Subnets = &Records[hardware.Subnet]{c, api.KindSubnet}
	c.Templates = &Records[workflow.Template]{c, api.KindTemplate}
	c.Rules = &Records[hardware.Rule]{c, api.KindRule}
	c.Images = &Records[api.Image]{c, api.KindImage}
	c.Workflows = &Records[api.Workflow]{c, api.KindWorkflow}
	c.Claims = &Records[hardware.Claim]{c, api.KindClaim}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Unreachable is a daemon that does not answer.
type Unreachable struct {
	Where string
	Err   error
}

func (e *Unreachable) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		return e.Where + ": there is no socket"
	case errors.Is(e.Err, fs.ErrPermission):
		return e.Where + ": permission denied"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return e.Where + ": nobody listens there"
	}
	return fmt.Sprintf("%s: %v", e.Where, e.Err)
}

// Unwrap is the cause.
func (e *Unreachable) Unwrap() error { return e.Err }

// Hint says what to type next.
func (e *Unreachable) Hint() string {
	var other *OtherCertificate
	var tlsErr *tls.CertificateVerificationError
	remote := strings.HasPrefix(e.Where, "https://")
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return "the socket is root's; try again with sudo, or with a token: rackstrap login https://APPLIANCE:" + DefaultPort
	case errors.As(e.Err, &other):
		return "if the certificate was renewed (on the appliance: rackstrap version), log in again: rackstrap login " + e.Where
	case errors.As(e.Err, &tlsErr):
		return "compare the fingerprint with what `rackstrap version` says on the appliance, and pin it: rackstrap login " + e.Where
	case remote:
		return "is the address right, and https.listen set there? On the appliance: systemctl status rackstrap"
	}
	return "start the daemon: systemctl start rackstrap (or in a terminal: rackstrap serve), or name its socket with --socket"
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	contentType  string
	body         io.Reader
	header       http.Header
	length       int64
}

// send returns the answer of a success; everything else is an error.
func (c *Client) send(ctx context.Context, rq request) (*http.Response, error) {
	if c.wrong != nil {
		return nil, c.wrong
	}
	u := c.base + rq.path
	if len(rq.query) > 0 {
		u += "?" + rq.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, rq.method, u, rq.body)
	if err != nil {
		return nil, err
	}
	for k, v := range rq.header {
		r.Header[k] = v
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if rq.contentType != "" {
		r.Header.Set("Content-Type", rq.contentType)
	}
	if rq.length > 0 {
		r.ContentLength = rq.length
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unreachable(c.where, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, problem(resp)
}

func problem(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	p := &api.Problem{}
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), api.ProblemType) || json.Unmarshal(raw, p) != nil {
		return &api.Problem{
			Status: resp.StatusCode, Code: api.CodeInternal, Title: resp.Status,
			Detail: fmt.Sprintf("the daemon answered %s, and not as this version does", resp.Status), Hint: "compare: rackstrap version",
		}
	}
	return p
}

// call sends in, if not nil, as JSON and reads the answer into out, if not nil.
func (c *Client) call(ctx context.Context, rq request, in, out any) error {
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		rq.body, rq.contentType = bytes.NewReader(raw), "application/json"
	}
	resp, err := c.send(ctx, rq)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s %s: the answer cannot be read: %w", rq.method, rq.path, err)
	}
	return nil
}
