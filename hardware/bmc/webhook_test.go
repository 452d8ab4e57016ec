package bmc_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

// TestCall: a next boot and an action are two calls, each with all that a receiver
// may know the machine by.
func TestCall(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, says(200, `{"power":"on","message":" two\tlines\nbecome one ","more":[1]}`))
	r.Start()
	o, _ := options()
	at := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	o.Now = func() time.Time { return at }
	out, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", r.URL+"/rack1?token=x"), "on", "network")
	if want := (bmc.Outcome{Driver: "webhook", State: hardware.PowerOn, Message: "two lines become one"}); err != nil || out != want {
		t.Fatalf("%+v, %v, want %+v", out, err, want)
	}
	want := bmc.Call{
		Version: 1, ID: "id-1", Time: at, Action: bmc.ActionNextBoot, NextBoot: bmc.Network, Firmware: "uefi",
		Machine: bmc.Machine{
			Name: "m1", UID: "uid-m1", Rack: "a1", Position: "12", AssetTag: "0042", Labels: map[string]string{"pdu": "b7"},
			MACs: []hardware.MAC{{0x52, 0x54, 0, 0, 0, 1}, {0x52, 0x54, 0, 0, 0, 2}},
		},
	}
	second := want
	second.ID, second.Action, second.NextBoot = "id-2", bmc.ActionOn, ""
	if got := r.seen(); !reflect.DeepEqual(got, []bmc.Call{want, second}) {
		t.Errorf("called with\n%+v\nwant\n%+v", got, []bmc.Call{want, second})
	}
	if len(r.bad) > 0 {
		t.Errorf("refused: %v", r.bad)
	}
}

// TestAnswers: what each answer of a receiver means, how often it is asked, and what
// people read of it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	type kind string
	const done, refused, unreachable, unsupported kind = "done", "refused", "unreachable", "unsupported"
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, int, bmc.Call)
		calls  int
		kind   kind
		state  hardware.PowerState
		says   string // in the error or the message
	}{
		"on":             {says(200, `{"power":"on"}`), 1, done, hardware.PowerOn, ""},
		"asked, is off":  {says(202, `{"power":"off","message":"relay 7 clicks in 10 s"}`), 1, done, hardware.PowerOff, "relay 7 clicks"},
		"unknown":        {says(200, `{"power":"unknown"}`), 1, done, "", ""},
		"nothing said":   {says(200, `{}`), 1, done, "", ""},
		"no content":     {says(204, ""), 1, done, "", ""},
		"500 then on":    {thenOn(500), 2, done, hardware.PowerOn, ""},
		"429, 503, on":   {thenOn(429, 503, 408), 4, done, hardware.PowerOn, ""},
		"always 500":     {says(500, "out of relays\n"), 4, unreachable, "", "tried 4 times: answers 500: out of relays"},
		"502":            {says(502, ""), 4, unreachable, "", "answers 502: Bad Gateway"},
		"cut short":      {cut, 4, unreachable, "", "tried 4 times: the answer broke off"},
		"400":            {says(400, `{"message":"no such version"}`), 1, refused, "", "answers 400: no such version"},
		"401":            {says(401, ""), 1, refused, "", "compare spec.power.secret with the receiver's, and the clocks"},
		"403":            {says(403, `{"message":"not this rack"}`), 1, refused, "", "answers 403: not this rack (compare"},
		"404":            {says(404, ""), 1, refused, "", "answers 404: not found (is spec.power.url right"},
		"409":            {says(409, "id seen before"), 1, refused, "", "answers 409: id seen before"},
		"422, HTML":      {says(422, "<html>\n"+strings.Repeat("long ", 500)), 1, refused, "", "<html> long"},
		"501":            {says(501, ""), 1, unsupported, "", "it cannot do this"},
		"redirect":       {redirect("https://elsewhere.test/x?token=y"), 1, refused, "", "it leads to elsewhere.test, and redirects are not followed"},
		"redirect, near": {redirect("/other"), 1, refused, "", "it leads elsewhere"},
		"HTML":           {says(200, "<html>it works</html>"), 1, refused, "", "not JSON of the contract"},
		"empty":          {says(200, ""), 1, refused, "", "not JSON of the contract"},
		"a list":         {says(200, `["on"]`), 1, refused, "", "not JSON of the contract"},
		"two values":     {says(200, `{"power":"on"}{"power":"off"}`), 1, refused, "", "not JSON of the contract"},
		"maybe":          {says(200, `{"power":"maybe\u0007"}`), 1, refused, "", `with power "maybe ", which is not on, off or unknown`},
		"huge":           {says(200, `{"message":"`+strings.Repeat("x", 1<<20)+`"}`), 1, refused, "", "with more than 16384 bytes"},
		"huge head":      {hugeHead, 4, unreachable, "", "exceeded"},
		"echoes":         {says(400, "the secret is "+secret), 1, refused, "", "the secret is (redacted)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, tc.answer)
			r.Start()
			o, w := options()
			out, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", r.URL+"/hook/path-token"), "status", "")
			got, text := done, out.Message
			if err != nil {
				text = err.Error()
				var no *bmc.Refused
				var down *bmc.Unreachable
				switch {
				case errors.Is(err, errors.ErrUnsupported):
					got = unsupported
				case errors.As(err, &no):
					got = refused
				case errors.As(err, &down) && down.Tries == tc.calls:
					got = unreachable
				default:
					got = kind(err.Error())
				}
			}
			if got != tc.kind || out.State != tc.state || !strings.Contains(text, tc.says) || out.Driver != "webhook" {
				t.Errorf("%s, %+v, %v, want %s, power %q and %q", got, out, err, tc.kind, tc.state, tc.says)
			}
			if strings.Contains(text, secret) || strings.Contains(text, "path-token") || strings.Contains(text, "token=y") || len(text) > 500 {
				t.Errorf("people read: %s", text)
			}
			calls := r.seen()
			if len(calls) != tc.calls || len(r.bad) > 0 {
				t.Fatalf("%d calls, want %d (%v)", len(calls), tc.calls, r.bad)
			}
			for _, c := range calls {
				if !reflect.DeepEqual(c, calls[0]) {
					t.Errorf("a repeat is %+v, the first was %+v", c, calls[0])
				}
			}
			least := time.Second
			for _, d := range w.list {
				if d < least || d > least*3/2 {
					t.Errorf("waited %v, want 1 s to 1.5 s, then twice as long each time", w.list)
				}
				least *= 2
			}
		})
	}
}

// thenOn answers with the codes first, and then that the machine is on.
func thenOn(codes ...int) func(http.ResponseWriter, int, bmc.Call) {
	return func(w http.ResponseWriter, n int, _ bmc.Call) {
		if n <= len(codes) {
			w.WriteHeader(codes[n-1])
			return
		}
		_, _ = io.WriteString(w, `{"power":"on"}`)
	}
}

func cut(w http.ResponseWriter, _ int, _ bmc.Call) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"power":`)
}

func redirect(to string) func(http.ResponseWriter, int, bmc.Call) {
	return func(w http.ResponseWriter, _ int, _ bmc.Call) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

func hugeHead(w http.ResponseWriter, _ int, _ bmc.Call) {
	w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
}

// TestSlow: a receiver that does not answer in time is asked again; the answer of a
// caller that gives up is its own error.
func TestSlow(t *testing.T) {
	t.Parallel()
	hang, heard := make(chan struct{}), make(chan struct{}, 8)
	r := newReceiver(t, func(w http.ResponseWriter, n int, _ bmc.Call) {
		heard <- struct{}{}
		if n != 2 {
			<-hang
		}
		_, _ = io.WriteString(w, `{"power":"off"}`)
	})
	r.Start()
	t.Cleanup(func() { close(hang) }) // before the server's own end
	o, _ := options()
	o.Timeout = 50 * time.Millisecond
	out, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", r.URL), "off", "")
	if err != nil || out.State != hardware.PowerOff || len(r.seen()) != 2 {
		t.Errorf("%+v, %v after %d calls", out, err, len(r.seen()))
	}
	<-heard
	<-heard

	o.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-heard; cancel() }()
	_, err = bmc.NewPower(o, nil).Do(ctx, machine("m1", r.URL), "off", "")
	var down *bmc.Unreachable
	if !errors.Is(err, context.Canceled) || !errors.As(err, &down) || down.Tries != 1 {
		t.Errorf("given up: %v", err)
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	r.Start()
	r.Close()
	o, w := options()
	_, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", r.URL+"/path-token"), "on", "")
	var down *bmc.Unreachable
	if !errors.As(err, &down) || down.Tries != 4 || len(w.list) != 3 || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "path-token") {
		t.Errorf("%v after the waits %v", err, w.list)
	}
}

// TestTLS: a private CA from the record is trusted, besides the system's; anything
// else is refused with what to do, and without a second try.
func TestTLS(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, says(200, `{"power":"on"}`))
	r.StartTLS()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}))
	plain := newReceiver(t, says(200, `{"power":"on"}`))
	plain.Start()
	byName := strings.Replace(r.URL, "127.0.0.1", "localhost", 1)
	for name, tc := range map[string]struct{ url, ca, says string }{
		"its CA":        {r.URL, ca, ""},
		"no CA":         {r.URL, "", "its certificate is not trusted: x509: certificate signed by unknown authority (put its CA into spec.power.ca)"},
		"another name":  {byName, ca, "its certificate is not trusted: x509"},
		"no TLS":        {strings.Replace(plain.URL, "http", "https", 1), ca, "it does not speak TLS"},
		"broken CA":     {r.URL, strings.Replace(ca, "M", "N", 1), "spec.power.ca has no certificate that can be read"},
		"TLS, not said": {strings.Replace(r.URL, "https", "http", 1), "", "answers 400: Client sent an HTTP request to an HTTPS server."},
	} {
		o, w := options()
		h := machine("m1", tc.url)
		h.Spec.Power.CA = tc.ca
		out, err := bmc.NewPower(o, nil).Do(t.Context(), h, "status", "")
		var no *bmc.Refused
		if tc.says == "" {
			if err != nil || out.State != hardware.PowerOn {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		} else if !errors.As(err, &no) || !strings.Contains(err.Error(), tc.says) || len(w.list) > 0 {
			t.Errorf("%s: %v after the waits %v, want %q", name, err, w.list, tc.says)
		}
	}
}

// TestNoProxy: what the environment names as proxy never sees a call.
func TestNoProxy(t *testing.T) {
	proxy := newReceiver(t, says(200, `{"power":"off"}`))
	proxy.Start()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	o, _ := options()
	// Not loopback, which is never proxied: the dialer leads there nevertheless.
	r := newReceiver(t, says(200, `{"power":"on"}`))
	r.Start()
	o.Dial = dialTo(r.Listener.Addr().String())
	out, err := bmc.NewPower(o, nil).Do(t.Context(), machine("m1", "http://power.example.org/"), "status", "")
	if err != nil || out.State != hardware.PowerOn || len(proxy.seen()) > 0 {
		t.Errorf("%+v, %v, %d calls at the proxy", out, err, len(proxy.seen()))
	}
}
