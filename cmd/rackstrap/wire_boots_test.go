package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// noRecords is a view of no machines.
type noRecords struct{ recordView }

func (noRecords) HardwareByMAC(hardware.MAC) (*hardware.Hardware, bool) { return nil, false }
func (noRecords) BootingAt(netip.Addr) (workflow.Machine, bool)         { return workflow.Machine{}, false }

func TestImageThatIsNotKept(t *testing.T) {
	t.Parallel()
	blobs, err := image.Open(t.TempDir(), image.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := blobs.Put(t.Context(), strings.NewReader("x"), "")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	h := ipxe.NewHandler(ipxe.NewAssets(t.TempDir()), &httpBoots{
		tracker: newTracker(workflow.NewEngine(workflow.Config{Now: time.Now}), noRecords{}, log),
		images:  func(digest string) (*os.File, error) { return blobs.Open(t.Context(), digest) },
	}, ipxe.Pacing{}, log)
	for digest, want := range map[string]int{kept.Digest: http.StatusOK, strings.Repeat("0", 64): http.StatusNotFound, "0": http.StatusBadRequest} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/images/"+digest, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", digest, w.Code, want)
		}
	}
}
