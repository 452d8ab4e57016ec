package ipxe

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkBootFile loads an initramfs of 64 MB over the loopback: as a program that is
// not iPXE does, which nothing paces but the turns, and as iPXE at two rates. The first
// and the last show what pacing itself costs, the one between that it holds.
func BenchmarkBootFile(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "boot", "vmlinuz-amd64")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		b.Fatal(err)
	}
	const size = 64 << 20
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, tc := range []struct {
		agent string
		rate  int64
	}{{"curl/8", DefaultRate}, {"iPXE/1", DefaultRate}, {"iPXE/1", 2_000_000_000}} {
		b.Run(fmt.Sprintf("%s-%dMBs", tc.agent[:4], tc.rate/1_000_000), func(b *testing.B) {
			backend := &fakeBackend{seen: make(chan Observation, 1<<20)}
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() {
				_ = NewServer(NewHandler(NewAssets(dir), backend, Pacing{Rate: tc.rate}, quiet()), quiet()).Serve(b.Context(), l)
			}()
			req, err := http.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/boot/vmlinuz-amd64", nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("User-Agent", tc.agent)
			b.SetBytes(size)
			for b.Loop() {
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
					b.Fatal(n, err)
				}
				res.Body.Close()
			}
		})
	}
}
