package ipxe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// start runs a Server on a free port of the loopback and returns its address.
func start(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- NewServer(h, quiet()).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// bigProgram is a data directory with a boot program that no socket buffer holds.
func bigProgram(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, "boot/big.efi", "x")
	if err := os.Truncate(filepath.Join(dir, "boot/big.efi"), 64<<20); err != nil {
		t.Fatal(err)
	}
	return dir
}

func get(t *testing.T, addr, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	return c
}

// A machine that loses power in the middle was not sent its program.
func TestAborted(t *testing.T) {
	t.Parallel()
	b := newFakeBackend(t, "")
	addr := start(t, NewHandler(newAssets(builtin(), bigProgram(t)), b, Pacing{}, quiet()))
	c := get(t, addr, "/ipxe/big.efi")
	if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	o := b.await(t)
	if o.Reason != hardware.ReasonProgramFailed || o.Bytes >= 64<<20 || !strings.Contains(o.Detail, "of 67108864 bytes") {
		t.Errorf("observed %+v", o)
	}
}

// A machine that hangs does not keep its connection.
func TestStalled(t *testing.T) {
	t.Parallel()
	b := newFakeBackend(t, "")
	addr := start(t, newHandler(newAssets(builtin(), bigProgram(t)), b, Pacing{}, quiet(), 50*time.Millisecond))
	get(t, addr, "/ipxe/big.efi") // and never reads
	if o := b.await(t); o.Reason != hardware.ReasonProgramFailed {
		t.Errorf("observed %+v", o)
	}
}

// A connection that was idle for longer than a stall is served again.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	b := newFakeBackend(t, "")
	addr := start(t, newHandler(newAssets(builtin(), t.TempDir()), b, Pacing{}, quiet(), 20*time.Millisecond))
	var client http.Client
	for range 3 {
		res, err := client.Get("http://" + addr + "/ipxe/snponly.efi")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(body) != "embedded snponly.efi" {
			t.Fatalf("%q, %v", body, err)
		}
		<-time.After(30 * time.Millisecond) // for the deadline of this answer to pass
	}
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	addr := start(t, NewHandler(newAssets(builtin(), t.TempDir()), newFakeBackend(t, ""), Pacing{}, quiet()))
	for name, tc := range map[string]struct{ send, want string }{
		"large header": {"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 20<<10) + "\r\n\r\n", "HTTP/1.1 431"},
		"long path":    {"GET /ipxe/" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 431"},
		"not HTTP":     {"\x16\x03\x01\x02\x00\r\n\r\n", "HTTP/1.1 400"},
		"no host":      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
		"body":         {"GET /ipxe/snponly.efi HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", "HTTP/1.1 200"},
	} {
		c, err := net.Dial("tcp4", addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c, tc.send) }()
		head := make([]byte, len(tc.want))
		if _, err := io.ReadFull(c, head); err != nil || string(head) != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, head, err, tc.want)
		}
		c.Close()
	}
}

// recorder is a connection's ResponseWriter that says what it is to copy.
type recorder struct {
	*httptest.ResponseRecorder
	files, others int
}

func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	if lr, ok := src.(*io.LimitedReader); ok {
		if _, ok := lr.R.(*os.File); ok {
			r.files++
			return io.Copy(r.Body, lr)
		}
	}
	r.others++
	return io.Copy(r.Body, src)
}

// Images reach the connection in the one form that it hands to sendfile(2): a
// limited *os.File.
func TestImagesAreSentByTheKernel(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789abcdef", (2*stallChunk+160)/16)
	b := newFakeBackend(t, content)
	h := NewHandler(newAssets(builtin(), t.TempDir()), b, Pacing{}, quiet())
	for _, tc := range []struct {
		rng, want string
		chunks    int
	}{{"", content, 3}, {"bytes=16-31", content[16:32], 1}, {"bytes=5-", content[5:], 3}} {
		r := &recorder{ResponseRecorder: httptest.NewRecorder()}
		req := httptest.NewRequest(http.MethodGet, "/images/"+imageDigest, nil)
		if tc.rng != "" {
			req.Header.Set("Range", tc.rng)
		}
		h.ServeHTTP(r, req)
		if r.files != tc.chunks || r.others != 0 || r.Body.String() != tc.want {
			t.Errorf("range %q: %d chunks of the file, %d others, %d bytes", tc.rng, r.files, r.others, r.Body.Len())
		}
	}
}

func TestCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal("curl is not installed (apt-get install curl)")
		}
		t.Skip("curl is not installed (apt-get install curl)")
	}
	content := strings.Repeat("0123456789abcdef", 5*stallChunk/16)
	b := newFakeBackend(t, content)
	base := "http://" + start(t, NewHandler(newAssets(builtin(), t.TempDir()), b, Pacing{}, quiet()))
	image := base + "/images/" + imageDigest
	part := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(part, []byte(content[:3*stallChunk+7]), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"whole": {[]string{image}, content},
		"range": {[]string{"-r", "100-199", image}, content[100:200]},
		"head":  {[]string{"-I", "-o", "/dev/null", "-w", "%{http_code} %header{content-length}", image}, fmt.Sprintf("200 %d", len(content))},
	} {
		got, err := exec.Command(curl, append([]string{"-fsS"}, tc.args...)...).Output()
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if said, err := exec.Command(curl, "-fsS", "-C", "-", "-o", part, image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if got, err := os.ReadFile(part); err != nil || !bytes.Equal(got, []byte(content)) {
		t.Errorf("continued download: %d bytes, %v", len(got), err)
	}
}
