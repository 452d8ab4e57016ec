package ipxe

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// fakeBackend knows one machine and one image.
type fakeBackend struct {
	images string // folder
	seen   chan Observation
	change func(*ScriptInput) // may be nil
}

var _ Backend = (*fakeBackend)(nil)

const imageDigest = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func newFakeBackend(t *testing.T, image string) *fakeBackend {
	t.Helper()
	b := &fakeBackend{images: t.TempDir(), seen: make(chan Observation, 100)}
	write(t, b.images, imageDigest, image)
	return b
}

func (b *fakeBackend) Script(_ context.Context, mac hardware.MAC, client netip.Addr) (ScriptInput, hardware.Reason) {
	in := workerInput()
	if mac != in.MAC {
		return ScriptInput{}, hardware.ReasonUnknownMachine
	}
	if client != netip.MustParseAddr("127.0.0.1") {
		in.Token = ""
		return in, hardware.ReasonScriptNoToken
	}
	if b.change != nil {
		b.change(&in)
	}
	return in, hardware.ReasonScriptSent
}

func (b *fakeBackend) Asks(_ context.Context, client netip.Addr) (hardware.MAC, bool) {
	if client != netip.MustParseAddr("127.0.0.1") {
		return hardware.MAC{}, false
	}
	return workerInput().MAC, true
}

func (b *fakeBackend) Observe(ctx context.Context, o Observation) {
	if ctx.Err() != nil {
		o.Reason = "observed with an ended context"
	}
	b.seen <- o
}

func (b *fakeBackend) Image(_ context.Context, digest string) (*os.File, error) {
	return os.Open(filepath.Join(b.images, digest))
}

// observed is what was seen since the last call, without times.
func (b *fakeBackend) observed(t *testing.T) []Observation {
	t.Helper()
	var out []Observation
	for {
		select {
		case o := <-b.seen:
			if o.Took < 0 || o.Client != netip.MustParseAddr("127.0.0.1") {
				t.Errorf("observation %+v", o)
			}
			o.Took, o.Client = 0, netip.Addr{}
			out = append(out, o)
		default:
			return out
		}
	}
}

// await is the next observation.
func (b *fakeBackend) await(t *testing.T) Observation {
	t.Helper()
	select {
	case o := <-b.seen:
		return o
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was observed")
	}
	return Observation{}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func logTo(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
