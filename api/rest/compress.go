package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
)

const (
	// compressFrom is from what size on an answer is compressed: less fits into one packet.
	compressFrom = 1 << 10
	// packersAtOnce is how many answers are compressed at a time: each keeps most of a
	// megabyte until its client has read it. More are sent as they are.
	packersAtOnce = 16
)

// packers are the compressors of a server, used again and again.
type packers chan *gzip.Writer

func newPackers() packers {
	p := make(packers, packersAtOnce)
	for range packersAtOnce {
		p <- nil // made when it is needed first
	}
	return p
}

// packed is an answer that is compressed if it turns out to be JSON and not small. What
// is streamed, and what is no JSON, goes through as it is.
type packed struct {
	http.ResponseWriter
	packers packers
	status  int
	early   []byte // what came before it was decided
	decided bool
	gz      *gzip.Writer // nil: as it is
}

// compressed is the answer to a request of that route. It must be ended: as a whole
// where the handler ends, or not where it panics, so that a list that was cut off has no end.
func (s *server) compressed(w http.ResponseWriter, r *http.Request, route Route) (_ http.ResponseWriter, end func(whole bool)) {
	secret := strings.HasPrefix(route.Path, "/tokens") || strings.HasPrefix(route.Path, sessionPath) // its length would tell of it
	if secret || !takesGzip(r.Header) {
		return w, func(bool) {}
	}
	p := &packed{ResponseWriter: w, packers: s.packers}
	return p, p.end
}

// takesGzip reads Accept-Encoding (RFC 9110 section 12.5.3).
func takesGzip(h http.Header) bool {
	for _, list := range h.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(list, ",") {
			name, weight, _ := strings.Cut(one, ";")
			q, _ := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				return weight == "" || strings.Trim(q, "0.") != ""
			}
		}
	}
	return false
}

// Unwrap serves http.ResponseController.
func (p *packed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader implements http.ResponseWriter: it waits for the body.
func (p *packed) WriteHeader(status int) {
	switch {
	case status < http.StatusOK: // 100 Continue
		p.ResponseWriter.WriteHeader(status)
	case p.status == 0:
		p.status = status
		if t := p.Header().Get("Content-Type"); (t != openapi.JSON && t != api.ProblemType) || status == http.StatusNoContent || p.Header().Get("Content-Encoding") != "" {
			p.decide(false)
		}
	}
}

// Write implements http.ResponseWriter.
func (p *packed) Write(b []byte) (int, error) {
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	if !p.decided && len(p.early)+len(b) < compressFrom {
		p.early = append(p.early, b...)
		return len(b), nil
	}
	if err := p.decide(true); err != nil {
		return 0, err
	}
	if p.gz != nil {
		return p.gz.Write(b)
	}
	return p.ResponseWriter.Write(b)
}

// decide sends the header and what waits; large says that compressing is worth it.
func (p *packed) decide(large bool) error {
	if p.decided {
		return nil
	}
	p.decided = true
	p.Header().Add("Vary", "Accept-Encoding")
	if large {
		select {
		case p.gz = <-p.packers:
			if p.gz == nil {
				p.gz, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that there is
			}
			p.gz.Reset(p.ResponseWriter)
			p.Header().Set("Content-Encoding", "gzip")
			p.Header().Del("Content-Length")
		default:
		}
	}
	p.ResponseWriter.WriteHeader(p.status)
	if len(p.early) == 0 {
		return nil
	}
	var err error
	if p.gz != nil {
		_, err = p.gz.Write(p.early)
	} else {
		_, err = p.ResponseWriter.Write(p.early)
	}
	return err
}

// FlushError implements the flush of http.ResponseController.
func (p *packed) FlushError() error {
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	err := p.decide(false)
	if p.gz != nil {
		err = errors.Join(err, p.gz.Flush())
	}
	return errors.Join(err, http.NewResponseController(p.ResponseWriter).Flush())
}

// end gives the compressor back, and completes a whole answer before. The client may be
// gone.
func (p *packed) end(whole bool) {
	if whole && p.status != 0 {
		_ = p.decide(false)
	}
	if p.gz == nil {
		return
	}
	if whole {
		_ = p.gz.Close()
	}
	p.gz.Reset(nil)
	p.packers <- p.gz
	p.gz = nil
}
