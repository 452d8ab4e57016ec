package bmc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// webhookTries at a receiver that does not answer, or answers that it cannot now.
	webhookTries = 4
	// firstWait is before the second try, doubled before each further one, each with
	// up to half of it more, so that a rack does not come back in step.
	firstWait = time.Second
	// maxReply is the longest answer that is read, head and body each.
	maxReply = 16 << 10
)

var _ Driver = (*webhook)(nil)

// webhook calls a receiver of the operator's; deploy/docs/power.md has the contract.
type webhook struct {
	o      Options
	url    string
	host   string // of url: what is shown of it, a path or query may hold a token
	secret string
	client *http.Client
	call   Call // what is the same in every call
}

func newWebhook(h *hardware.Hardware, o Options) (Driver, error) {
	p := h.Spec.Power
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return nil, &Refused{Who: h.Meta.Name, Why: "spec.power.url is not an http(s) URL"}
	}
	roots, err := trusted(p.CA)
	if err != nil {
		return nil, &Refused{Who: h.Meta.Name, Why: err.Error()}
	}
	w := &webhook{
		o: o, url: p.URL, host: u.Host, secret: p.Secret,
		client: &http.Client{
			Transport: &http.Transport{
				// No Proxy: what HTTP_PROXY names is the way to the world, and
				// controllers are in the rack.
				DialContext:            o.Dial,
				TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
				DisableKeepAlives:      true, // calls are rare, and a driver is made for one
				MaxResponseHeaderBytes: maxReply,
			},
			// A redirect would send a signed call to whom the record does not name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		call: Call{
			Version: Version,
			Machine: Machine{
				Name: h.Meta.Name, UID: h.Meta.UID, Rack: h.Spec.Rack, Position: h.Spec.Position,
				AssetTag: h.Spec.AssetTag, Labels: h.Meta.Labels,
			},
		},
	}
	for _, n := range h.Spec.Interfaces {
		w.call.Machine.MACs = append(w.call.Machine.MACs, n.MAC)
	}
	if h.Facts != nil {
		w.call.Firmware = h.Facts.Firmware
	}
	return w, nil
}

// trusted is the system's certificates and those of the record; nil is the system's.
func trusted(ca string) (*x509.CertPool, error) {
	if ca == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("spec.power.ca has no certificate that can be read")
	}
	return pool, nil
}

func (w *webhook) Status(ctx context.Context) (Answer, error) { return w.ask(ctx, ActionStatus, "") }
func (w *webhook) On(ctx context.Context) (Answer, error)     { return w.ask(ctx, ActionOn, "") }
func (w *webhook) Off(ctx context.Context) (Answer, error)    { return w.ask(ctx, ActionOff, "") }
func (w *webhook) Cycle(ctx context.Context) (Answer, error)  { return w.ask(ctx, ActionCycle, "") }
func (w *webhook) NextBoot(ctx context.Context, from Device) (Answer, error) {
	return w.ask(ctx, ActionNextBoot, from)
}

// ask makes one call, with repeats where the receiver is not reached. They have the
// same id and body: the first may have been obeyed and only its answer lost.
func (w *webhook) ask(ctx context.Context, action Action, from Device) (Answer, error) {
	call := w.call
	call.Time = w.o.Now().UTC().Truncate(time.Millisecond)
	call.ID, call.Action, call.NextBoot = w.o.NewID(call.Time), action, from
	body, err := json.Marshal(call)
	if err != nil {
		return Answer{}, err
	}
	for try, pause := 1, firstWait; ; try, pause = try+1, pause*2 {
		answer, err := w.try(ctx, body)
		if down, ok := errors.AsType[*Unreachable](err); !ok {
			return answer, err
		} else if down.Tries = try; try == webhookTries || ctx.Err() != nil {
			return answer, down
		} else if w.o.Wait(ctx, pause+rand.N(pause/2)) != nil {
			return answer, down
		}
	}
}

func (w *webhook) try(ctx context.Context, body []byte) (Answer, error) {
	leave, err := w.o.enter(ctx, w.host)
	if err != nil {
		return Answer{}, &Unreachable{Who: w.host, Err: err}
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return Answer{}, &Refused{Who: w.host, Why: "spec.power.url is not an http(s) URL"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "rackstrap")
	req.Header.Set(SignatureHeader, Sign(w.secret, w.o.Now(), body))
	resp, err := w.client.Do(req)
	if err != nil {
		return Answer{}, w.unanswered(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return Answer{}, &Unreachable{Who: w.host, Err: fmt.Errorf("the answer broke off: %w", err)}
	}
	return w.judge(resp, text)
}

// unanswered sorts the errors of a connection: a certificate does not get better.
func (w *webhook) unanswered(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // it would show the URL
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Refused{Who: w.host, Why: fmt.Sprintf("its certificate is not trusted: %v (put its CA into spec.power.ca)", bad.Err)}
	}
	// net/http makes a sentence of a tls.RecordHeaderError that reads like HTTP.
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		return &Refused{Who: w.host, Why: "it does not speak TLS (write http:// in spec.power.url, or switch TLS on there)"}
	}
	return &Unreachable{Who: w.host, Err: err}
}
