package ipxe

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"
)

const (
	// stallChunk bytes must be taken within stallTime, or the connection ends. A
	// worker that writes to a slow disk pauses for a long time, a dead machine for
	// ever. There is no limit on a whole download.
	stallChunk = 1 << 20
	stallTime  = 2 * time.Minute
)

// sender is a ResponseWriter that counts what it sends and ends connections to
// clients that stopped taking it. Its ReadFrom hands files on to the connection's
// own, so that the kernel copies them (sendfile).
type sender struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	turn    *turn           // nil: it is always this one's turn
	ctx     context.Context // of the request; needed with a turn
	status  int
	bytes   int64
	err     error // the first error of writing
}

var _ io.ReaderFrom = (*sender)(nil)

func newSender(w http.ResponseWriter, limit time.Duration) *sender {
	return &sender{ResponseWriter: w, control: http.NewResponseController(w), limit: limit, status: http.StatusOK}
}

// Unwrap lets http.ResponseController find the ResponseWriter below.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *sender) WriteHeader(status int) {
	s.status = status
	s.extend()
	s.ResponseWriter.WriteHeader(status)
}

// extend gives the client another stallTime. Writers without deadlines are those
// of tests.
func (s *sender) extend() {
	err := s.control.SetWriteDeadline(time.Now().Add(s.limit))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.note(err)
	}
}

func (s *sender) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *sender) Write(p []byte) (int, error) {
	s.extend()
	n, err := s.ResponseWriter.Write(p)
	s.bytes += int64(n)
	s.note(err)
	return n, err
}

func (s *sender) share(first bool) int64 {
	if s.turn == nil {
		return stallChunk
	}
	return s.turn.share(s.ctx, first)
}

// copy sends a chunk; a client that does not take it loses its turn meanwhile.
func (s *sender) copy(chunk *io.LimitedReader) (int64, error) {
	if s.turn != nil {
		defer time.AfterFunc(turnPatience, s.turn.lapse).Stop()
	}
	return io.Copy(s.ResponseWriter, chunk)
}

// ReadFrom sends r in chunks. net/http and net look through one io.LimitedReader
// for the *os.File that they can hand to the kernel, not through two.
func (s *sender) ReadFrom(r io.Reader) (total int64, err error) {
	rest := int64(math.MaxInt64)
	if lr, ok := r.(*io.LimitedReader); ok {
		r, rest = lr.R, lr.N
		defer func() { lr.N -= total }()
	}
	for rest > 0 && err == nil {
		share := s.share(total == 0)
		chunk := &io.LimitedReader{R: r, N: min(rest, share)}
		want := chunk.N
		s.extend()
		var n int64
		n, err = s.copy(chunk)
		if err == nil && share == trickle {
			err = s.control.Flush()
		}
		total += n
		rest -= n
		if n < want {
			break
		}
	}
	s.bytes += total
	s.note(err)
	return total, err
}
