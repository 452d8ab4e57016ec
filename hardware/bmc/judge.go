package bmc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// maxMessage bounds what a controller may say to people, in bytes.
const maxMessage = 256

// judge reads an answer: done, refused, or to be asked again.
func (w *webhook) judge(resp *http.Response, text []byte) (Answer, error) {
	code := resp.StatusCode
	refused := func(format string, args ...any) (Answer, error) {
		return Answer{}, &Refused{Who: w.host, Code: code, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case code == http.StatusNoContent:
		return Answer{}, nil
	case code == http.StatusOK || code == http.StatusAccepted:
		if len(text) > maxReply {
			return refused("with more than %d bytes (answer {\"power\": \"on\"})", maxReply)
		}
		a, err := w.answer(text)
		if err != nil {
			return refused("%v (answer {\"power\": \"on\"})", err)
		}
		return a, nil
	case code >= 300 && code < 400:
		to := "elsewhere"
		if u, err := url.Parse(resp.Header.Get("Location")); err == nil && u.Host != "" {
			to = "to " + hardware.PlainText(u.Host, 80)
		}
		return refused("it leads %s, and redirects are not followed (write the last URL into spec.power.url)", to)
	case code == http.StatusNotImplemented:
		return Answer{}, &Refused{Who: w.host, Code: code, Why: or(w.said(text), "it cannot do this"), Unsupported: true}
	case code == http.StatusRequestTimeout || code == http.StatusTooEarly || code == http.StatusTooManyRequests || code >= 500:
		return Answer{}, &Unreachable{Who: w.host, Err: fmt.Errorf("answers %d: %s", code, or(w.said(text), http.StatusText(code)))}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return refused("%s (compare spec.power.secret with the receiver's, and the clocks)", or(w.said(text), "the signature was not accepted"))
	case code == http.StatusNotFound:
		return refused("%s (is spec.power.url right, and does the receiver know the machine?)", or(w.said(text), "not found"))
	default:
		return refused("%s", or(w.said(text), http.StatusText(code)))
	}
}

// answer reads the body of a 200 or 202.
func (w *webhook) answer(text []byte) (Answer, error) {
	var r Reply
	if err := json.Unmarshal(text, &r); err != nil {
		return Answer{}, fmt.Errorf("with a body that is not JSON of the contract: %w", err)
	}
	a := Answer{Message: w.plain(r.Message)}
	switch r.Power {
	case "on":
		a.State = hardware.PowerOn
	case "off":
		a.State = hardware.PowerOff
	case "", "unknown":
		a.State = hardware.PowerUnknown
	default:
		return Answer{}, fmt.Errorf("with power %q, which is not on, off or unknown", hardware.PlainText(r.Power, 40))
	}
	return a, nil
}

// said is what a receiver that did not obey says: the message of its JSON, or the
// beginning of its text.
func (w *webhook) said(text []byte) string {
	var r Reply
	if json.Unmarshal(text, &r) == nil && r.Message != "" {
		return w.plain(r.Message)
	}
	return w.plain(string(text))
}

// plain makes one line of a stranger's text, without our secret should it be in it.
func (w *webhook) plain(s string) string {
	if w.secret != "" {
		s = strings.ReplaceAll(s, w.secret, hardware.Redacted)
	}
	return strings.Join(strings.Fields(hardware.PlainText(s, maxMessage)), " ")
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
