package rest

import (
	"io"
	"net/http"
	"time"
)

// lingerTime is how long a client that still sends may take to see its answer.
const lingerTime = time.Second

// bodyLeft is an error that comes while the client still sends its file.
type bodyLeft struct{ error }

// Unwrap is the error itself.
func (b bodyLeft) Unwrap() error { return b.error }

// linger prepares an answer to a request whose body was not read to its end. What it
// returns is called after the answer was written, and reads on for a moment: a
// connection that is closed while its client writes is reset, and the answer is lost
// with it. net/http does the same, but not where the client sent Expect: 100-continue.
func linger(w http.ResponseWriter, r *http.Request) (after func()) {
	c := http.NewResponseController(w)
	if r.ProtoMajor != 1 || c.EnableFullDuplex() != nil {
		return func() {} // HTTP/2 ends one stream and not the connection
	}
	return func() {
		if c.Flush() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // it ends with the client's end, or the deadline
	}
}
