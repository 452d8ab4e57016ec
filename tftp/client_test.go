package tftp

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// need skips without the program, or fails where skipping is not allowed.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	const why = "needs %s (apt-get install %s)"
	if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
		t.Fatalf(why, program, debian)
	}
	t.Skipf(why, program, debian)
	return ""
}

// Real clients. 127.0.0.2 stands for the second address of a host: the answer
// must come from the address that was asked.
func TestRealClients(t *testing.T) {
	t.Parallel()
	// 65535 blocks of 512 bytes are 33,553,920: the block number begins anew.
	const long = 33_553_920 + 70_000
	want := map[string][]byte{"boot/long": pattern(long), "boot/short": pattern(70_000)}
	s, _, w := start(t, want, 0)
	port := strconv.Itoa(int(s.Addr().Port()))
	for _, tt := range []struct {
		name, program, debian, file string
		args                        func(out string) []string
	}{
		{"tftp-hpa", "tftp", "tftp-hpa", "boot/short", func(out string) []string {
			return []string{"-m", "binary", "127.0.0.2", port, "-c", "get", "boot/short", out}
		}},
		{"curl, large blocks", "curl", "curl", "boot/short", func(out string) []string {
			return []string{"-sS", "--tftp-blksize", "1468", "-o", out, "tftp://127.0.0.2:" + port + "//boot/short"}
		}},
		{"curl, roll-over", "curl", "curl", "boot/long", func(out string) []string {
			return []string{"-sS", "--tftp-blksize", "512", "-o", out, "tftp://127.0.0.2:" + port + "//boot/long"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program := need(t, tt.program, tt.debian)
			out := filepath.Join(t.TempDir(), "out")
			ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
			defer cancel()
			if text, err := exec.CommandContext(ctx, program, tt.args(out)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			got, err := os.ReadFile(out)
			if err != nil || !bytes.Equal(got, want[tt.file]) {
				t.Fatalf("got %d bytes (%v), want %d", len(got), err, len(want[tt.file]))
			}
			if d := await(t, "Done", w.done); d.err != nil || d.Name != tt.file {
				t.Errorf("observed %+v", d)
			}
		})
	}
}
