package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/api"
)

// Request is one to the appliance: Path is below the API's base.
type Request struct {
	Method, Path string
	Body         string
}

// Fault is what becomes of a request; the zero value is that it is answered.
type Fault struct {
	// Before is called before the appliance gets the request, After when it has acted upon
	// it; nothing is called where they are nil.
	Before, After func()
	// Status is answered instead, by a proxy that speaks no JSON.
	Status int
	// Hang: the appliance never gets it, and nobody answers.
	Hang bool
	// Lose: the appliance acts upon it, and the connection is cut before the answer.
	Lose bool
}

// Proxy is a real one between the provider and the appliance.
type Proxy struct {
	server *httptest.Server
	done   chan struct{}

	mu    sync.Mutex
	judge func(Request) Fault
}

// Judge has f decide about each request from now on; nil lets all pass. f is called by
// several goroutines.
func (p *Proxy) Judge(f func(Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = f
}

// proxy starts one in front of the appliance, and writes it into the Secret's data.
func (s *Suite) proxy(ctx context.Context) error {
	to, err := url.Parse(s.secret["url"])
	if err != nil {
		return err
	}
	ln, err := s.Lab.Namespace.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := &Proxy{done: make(chan struct{})}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1 // the stream of events
	pass.Transport = &http.Transport{
		DialContext:     s.Lab.Namespace.Dial,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // in the test's own namespace
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(pass, w, r) }))
	_ = p.server.Listener.Close()
	p.server.Listener = ln
	p.server.StartTLS()
	s.Cleanup(func() {
		close(p.done)
		p.server.CloseClientConnections() // streams have no end of their own
		p.server.Close()
	})
	sum := sha256.Sum256(p.server.Certificate().Raw)
	s.Proxy, s.secret["url"], s.secret["fingerprint"] = p, p.server.URL, hex.EncodeToString(sum[:])
	return nil
}

func (p *Proxy) serve(pass http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.mu.Lock()
	judge := p.judge
	p.mu.Unlock()
	var f Fault
	if judge != nil {
		f = judge(Request{Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, api.Base), Body: string(body)})
	}
	if f.Before != nil {
		f.Before()
	}
	switch {
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-p.done:
		}
	case f.Lose || f.After != nil:
		got := httptest.NewRecorder()
		// also where the client goes meanwhile: the request has arrived
		pass.ServeHTTP(got, r.WithContext(context.WithoutCancel(r.Context())))
		if f.After != nil {
			f.After()
		}
		panic(http.ErrAbortHandler)
	default:
		pass.ServeHTTP(w, r)
	}
}
