package web_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// site is a web server with one disk image, as slow and as poor as a test wants it.
type site struct {
	image []byte
	// rate is bytes a second; 0 is no limit.
	rate int
	// cut is after how many bytes the first answer breaks off; 0 is never.
	cut    int
	asked  atomic.Int64
	served time.Time
}

// newSite serves an image on an address of the appliance's until the test ends. q: mib,
// rate, cut. It answers with the image's URL and checksum.
func newSite(t *testing.T, l *lab.Lab, q url.Values) (any, error) {
	t.Helper()
	number := func(name string) int {
		n, _ := strconv.Atoi(q.Get(name)) // 0 where it is not said
		return n
	}
	s := &site{image: diskImage(number("mib") << 20), rate: number("rate"), cut: number("cut"), served: time.Now()}
	if len(s.image) == 0 {
		return nil, fmt.Errorf("mib %q: an image has at least 1", q.Get("mib"))
	}
	ln, err := l.Namespace.Listen(t.Context(), "tcp4", net.JoinHostPort(l.Gateway().String(), "0"))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	sum := sha256.Sum256(s.image)
	return map[string]string{"url": "http://" + ln.Addr().String() + "/disk.raw", "sum": "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// diskImage has the first sector of one, and no compression makes it small.
func diskImage(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	if n >= 512 {
		b[510], b[511] = 0x55, 0xaa
	}
	return b
}

// ServeHTTP answers ranges too, as a transfer asks for that goes on.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := &poorWriter{ResponseWriter: w, rate: s.rate}
	if r.Method == http.MethodGet && s.asked.Add(1) == 1 {
		p.cut = s.cut
	}
	http.ServeContent(p, r, "", s.served, bytes.NewReader(s.image))
}

// poorWriter is slow, and breaks off.
type poorWriter struct {
	http.ResponseWriter

	rate, cut, sent int
}

func (w *poorWriter) Write(b []byte) (int, error) {
	if w.cut > 0 && w.sent >= w.cut {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	if w.rate > 0 {
		time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(w.rate))
	}
	n, err := w.ResponseWriter.Write(b)
	w.sent += n
	return n, err
}
